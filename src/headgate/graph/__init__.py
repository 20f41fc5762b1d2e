"""The job as data: steps and edges, their checks and texts. Nothing here needs a JVM."""

from headgate.graph.model import Edge, Graph, Step, operator_id

__all__ = ["Edge", "Graph", "Step", "operator_id"]

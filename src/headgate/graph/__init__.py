"""The job as data: steps and edges, their checks and texts, and what every kind answers.

`model`, `formats` and `text` need no Spark; `operation`, `plan` and `check` are of use where a job
is built.
"""

from headgate.graph.model import Edge, Graph, Step, operator_id

__all__ = ["Edge", "Graph", "Step", "operator_id"]

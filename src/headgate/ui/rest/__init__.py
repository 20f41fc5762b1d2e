"""The REST interface: Flink's paths and names where they fit, served and described by FastAPI."""

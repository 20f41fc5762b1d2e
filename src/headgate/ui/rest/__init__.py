"""The REST interface: Flink's paths and names where they fit, described by OpenAPI."""

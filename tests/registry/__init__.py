"""Schema registries: formats whose schemas they keep, and a server to try them on."""

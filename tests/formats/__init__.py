"""Homes as older versions wrote them must go on."""

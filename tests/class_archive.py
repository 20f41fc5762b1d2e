"""What the JVMs of tests are started with: they use the archive of classes, but make none."""

from __future__ import annotations

import shlex

from headgate.jvm import class_archive
from headgate.jvm.java import find_java
from headgate.jvm.launch import FIRST_COMPILER


def java_options() -> str:
    """For JVMs that Headgate does not start itself: executors, masters and workers."""
    return shlex.join([*FIRST_COMPILER, *class_archive.java_options(find_java())])

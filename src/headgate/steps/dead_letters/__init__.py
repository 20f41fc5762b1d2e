"""Dead letters: rows that would be lost go to a topic, and back to their step when asked to."""

from headgate.steps.dead_letters.collect import SINK, collect
from headgate.steps.dead_letters.letter import LetterStep
from headgate.steps.dead_letters.replay import ReplayStep

__all__ = ["SINK", "LetterStep", "ReplayStep", "collect"]

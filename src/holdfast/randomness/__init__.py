"""Where random bits come from: the secure stream, seeded streams, keyed substreams."""

from holdfast.randomness.entropy import secure, seeded
from holdfast.randomness.keys import Keys
from holdfast.randomness.stream import Stream

__all__ = ["Keys", "Stream", "secure", "seeded"]

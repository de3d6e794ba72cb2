"""Certificates whose numbers are proved by Coq's kernel, from theorems that share no code with the rest of holdfast."""

from holdfast.proving.prove import Proof, prove

__all__ = ["Proof", "prove"]

"""The outcome of `twgen forget` as JSON."""

from twgen.model.forgetting import ForgetReport
from twgen.model.record_shapes import document_of
from twgen.versioning.names import TWGEN_API

FORGET_REPORT = document_of(TWGEN_API, "ForgetReport", ForgetReport, is_printed=True)

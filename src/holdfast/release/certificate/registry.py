"""The part of a certificate that the OpenDP deployments registry asks for, under the field names of the registry.

They are those of its schema of 15 July 2026 (opendp/deployments-registry-data, 3e9c812), which forbids any other.
"""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field

from holdfast.release.facts.statement import Model

Parameter = Literal["epsilon", "delta", "rho"]
#: What stands in the fields that only the spec can fill, where it does not.
UNSTATED = "not stated"


class Basic(Model):
    """Registry: what was made, by whom and for what."""

    name: str
    data_curators: Annotated[list[str], Field(min_length=1)]
    description: str
    intended_use: str
    data_product_type: Literal["Summary statistics", "Synthetic data"]
    data_product_region: str
    publication_date: Annotated[str, Field(pattern=r"^\d{4}-\d{2}-\d{2}$")]


class Variant(Model):
    """Registry: which kind of privacy, for which data, and what it leaves out."""

    variant_name: Literal["Pure DP", "Approximate DP", "Zero-concentrated DP"]
    data_domain: str
    unprotected_quantities: str


class PrivacyLoss(Model):
    """Registry: how much, and about whom."""

    privacy_unit: str
    privacy_unit_details: str
    privacy_parameters: dict[Parameter, float]
    privacy_parameters_details: str


class TrustModel(Model):
    """Registry: who is trusted with what."""

    model_name: Literal["Central", "Federated"]
    model_name_details: str
    release_type: Literal["One release"] = "One release"
    data_source_type: Literal["Static"] = "Static"
    access_type: Literal["Non-interactive"] = "Non-interactive"


CENTRAL = TrustModel(model_name="Central", model_name_details="One curator sees all records and adds the noise.")
DISTRIBUTED = TrustModel(
    model_name="Federated",
    model_name_details=(
        "Distributed: agents share a secret; what is promised holds against outsiders, not against an agent."
    ),
)


class Accounting(Model):
    """Registry: what is added up, and what happens after the noise."""

    post_processing: str
    composition: str


class Implementation(Model):
    """Registry: what ran."""

    preprocessing_and_hyperparameter_tuning: str
    mechanisms: str


class Deployment(Model):
    """An entry of the OpenDP deployments registry, as far as a release can fill it in."""

    basic: Basic
    dp_variant: Variant
    privacy_loss: PrivacyLoss
    deployment_model: TrustModel
    accounting: Accounting
    implementation: Implementation

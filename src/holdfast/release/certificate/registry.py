"""The part of a certificate that the OpenDP deployments registry asks for, under the field names of the registry."""

from __future__ import annotations

from typing import Annotated, Literal, get_args

from pydantic import Field

from holdfast.release.certificate.statement import Model

Parameter = Literal["epsilon", "delta", "rho"]


class Product(Model):
    """Registry: what was made."""

    name: str
    data_product_type: str
    description: str
    publication_date: Annotated[str, Field(pattern=r"^\d{4}-\d{2}-\d{2}$")]


class Flavour(Model):
    """Registry: which kind of privacy."""

    name: Literal["Pure DP", "Approximate DP", "Zero-concentrated DP"]
    input_metric: str
    bound_on_input_distance: int
    output_measure: str
    bound_on_output_distance: str
    data_domain: str
    unprotected_quantities: str


class PrivacyLoss(Model):
    """Registry: how much, and about whom."""

    privacy_unit: str
    privacy_unit_description: str
    privacy_parameters: dict[Parameter, float]
    privacy_parameters_description: str


Trust = Literal["Central", "Distributed: agents share a secret; it holds against outsiders, not against an agent"]
CENTRAL, DISTRIBUTED = get_args(Trust)


class TrustModel(Model):
    """Registry: who is trusted with what."""

    model_name: Trust
    release_type: Literal["One release"] = "One release"
    data_source_type: Literal["Static"] = "Static"
    access_type: Literal["Non-interactive"] = "Non-interactive"


class Accounting(Model):
    """Registry: what is added up, and what happens after the noise."""

    post_processing: str
    composition: str


class Implementation(Model):
    """Registry: what ran."""

    pre_processing_eda_hyperparameter_tuning: str
    mechanisms: str


class Deployment(Model):
    """An entry of the OpenDP deployments registry, as far as a release can fill it in."""

    product: Product
    dp_flavor: Flavour
    privacy_loss: PrivacyLoss
    model: TrustModel
    accounting: Accounting
    implementation: Implementation

(** Continuous Gaussian noise, of any covariance.

    Noise U on a space of vectors is known by the means E f of functions of it, and it is Gaussian because its density
    turns a shift by d into the factor e^(2b(u, d) - b(d, d)), b(u, v) = u'Σ⁻¹v/2 (Cameron–Martin): [shifts]. Nothing else is
    assumed of E but that it is linear and monotone; that the integral over a normal density is such a mean is not proved here.
    Proved: M(x) = q(x) + U has at every real order a > 1 exactly the moment e^((a-1) a b(d, d)), d = q(x) - q(x'), so ρ is
    the largest b(d, d) ([continuous_moment], [continuous_gaussian]), and every order gives an (ε, δ) ([continuous_to_dp]).
    With q the part of the answers that exact figures leave open and U on that space, it is noise on N (SDP Thm 12). *)

From Holdfast Require Export Renyi.
Set Implicit Arguments.
Unset Strict Implicit.

Section Continuous.
Context {X V : Type} `{Group V} (near : X -> X -> Prop) (q : X -> V) (rho : R).
Context (scale : R -> V -> V) (b : V -> V -> R).
Hypothesis b_sym : forall u v, b u v = b v u.
Hypothesis b_scale : forall c u v, b (scale c u) v = c * b u v.
(** The functions that have a mean, and the mean. *)
Context (I : (V -> R) -> Prop) (E : (V -> R) -> R).
Definition tilt d u := exp (2 * b u d - b d d).
Hypothesis one : I (fun _ => 1) /\ E (fun _ => 1) = 1.
Hypothesis linear : forall c f g, I f -> I g -> I (fun u => c * f u + g u) /\ E (fun u => c * f u + g u) = c * E f + E g.
Hypothesis monotone : forall f g, I f -> I g -> (forall u, f u <= g u) -> E f <= E g.
Hypothesis shifts : forall d f, I (fun u => f (add u d)) ->
  I (fun u => tilt d u * f u) /\ E (fun u => tilt d u * f u) = E (fun u => f (add u d)).

Lemma scaled c f : I f -> I (fun u => c * f u) /\ E (fun u => c * f u) = c * E f.
Proof.
  intros F. destruct (linear (-1) (proj1 one) (proj1 one)) as [Z EZ]. destruct (linear c F Z) as [A EA].
  assert (Q : (fun u => c * f u + (-1 * 1 + 1)) = fun u => c * f u) by (apply functional_extensionality; intros; lra).
  rewrite Q in *. split; [exact A |]. rewrite EA, EZ, (proj2 one). lra.
Qed.

(** The moment of order a of q(x) + U against q(x') + U, whose ratio at q(x') + u is [tilt d u]. *)
Theorem continuous_moment d a : I (fun u => Rpower (tilt d u) a) /\
  E (fun u => Rpower (tilt d u) a) = exp ((a - 1) * (a * b d d)).
Proof.
  destruct (@shifts (scale a d) (fun _ => 1) (proj1 one)) as [T ET]. rewrite (proj2 one) in ET.
  destruct (scaled (exp ((a - 1) * (a * b d d))) T) as [M EM]. rewrite ET, Rmult_1_r in EM.
  assert (Q : (fun u => exp ((a - 1) * (a * b d d)) * (tilt (scale a d) u * 1)) = fun u => Rpower (tilt d u) a).
  { apply functional_extensionality. intros u. unfold Rpower, tilt. rewrite ln_exp, Rmult_1_r, <- exp_plus. f_equal.
    rewrite (b_sym u), !b_scale, (b_sym d (scale a d)), b_scale, (b_sym d u). ring. }
  now rewrite Q in *.
Qed.

Hypothesis sensitivity : forall x x', near x x' -> b (sub (q x) (q x')) (sub (q x) (q x')) <= rho.

Theorem continuous_gaussian x x' a : near x x' -> 1 < a ->
  E (fun u => Rpower (tilt (sub (q x) (q x')) u) a) <= exp ((a - 1) * (a * rho)).
Proof.
  intros N A. rewrite (proj2 (continuous_moment _ _)). apply exp_le. specialize (sensitivity N).
  repeat apply Rmult_le_compat_l; lra.
Qed.

Theorem continuous_to_dp x x' a eps (S : V -> Prop) : near x x' -> 1 < a ->
  I (fun u => ind (S (add u (q x)))) -> I (fun u => ind (S (add u (q x')))) ->
  E (fun u => ind (S (add u (q x)))) <= exp eps * E (fun u => ind (S (add u (q x'))))
    + exp ((a - 1) * (a * rho - eps)) * Rpower (1 - / a) (a - 1) / a.
Proof.
  intros N A F F'. set (d := sub (q x) (q x')). set (k := exp (- ((a - 1) * eps)) * Rpower (1 - / a) (a - 1) / a).
  set (f := fun u => ind (S (add u (q x')))).
  assert (Q : (fun u => ind (S (add u (q x)))) = fun u => f (add u d)).
  { apply functional_extensionality. intros u. unfold f, d. now rewrite <- add_assoc, sub_add. }
  rewrite Q in *. destruct (@shifts d f F) as [T <-]. destruct (continuous_moment d a) as [M EM].
  destruct (scaled k M) as [M' EM']. destruct (linear (exp eps) F' M') as [G EG].
  apply Rle_trans with (exp eps * E f + k * E (fun u => Rpower (tilt d u) a)).
  - fold f in EG. rewrite <- EM', <- EG. apply monotone; [exact T | exact G |]. intros u. assert (P : 0 < tilt d u) by apply exp_pos.
    assert (B := @above_tangent a eps (tilt d u) 1 A (Rlt_le _ _ P) Rle_0_1 (fun _ => Rlt_0_1)). fold k in B.
    replace (tilt d u * Rpower (tilt d u / 1) (a - 1)) with (Rpower (tilt d u) a) in B.
    + fold f. unfold f. generalize (Rpower_pos (tilt d u) a). intros R0.
      assert (K : 0 <= k) by (unfold k, Rdiv; repeat apply Rmult_le_pos; try (left; apply exp_pos); left; apply Rinv_0_lt_compat; lra).
      assert (0 <= k * Rpower (tilt d u) a) by (apply Rmult_le_pos; lra). decide_ind (S (add u (q x'))); lra.
    + unfold Rdiv. rewrite Rinv_1, Rmult_1_r. rewrite <- (Rpower_1 (tilt d u)) at 2 by exact P.
      rewrite <- Rpower_plus. f_equal. lra.
  - apply Rplus_le_compat_l. assert (K : 0 <= k) by (unfold k, Rdiv; repeat apply Rmult_le_pos; try (left; apply exp_pos); left; apply Rinv_0_lt_compat; lra).
    eapply Rle_trans; [apply Rmult_le_compat_l; [exact K | apply (continuous_gaussian N A)] |]. right. unfold k.
    replace ((a - 1) * (a * rho - eps)) with (- ((a - 1) * eps) + (a - 1) * (a * rho)) by ring. rewrite exp_plus. field. lra.
Qed.
End Continuous.

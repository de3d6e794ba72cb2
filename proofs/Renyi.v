(** ρ: zero-concentrated privacy (Bun–Steinke 2016).

    [zcdp near rho M]: for neighbours and every order a > 1, Σ p (p/p')^(a-1) <= e^((a-1) a ρ).
    Proved: a function of the output keeps ρ ([zcdp_post_processing], [zcdp_imaging], TV Lemma 14 for ρ), also one that
    reads figures that neighbours share ([zcdp_beside_published]); two mechanisms, the second chosen by the output of the
    first, add their ρ ([zcdp_composition]); every order gives an (ε, δ) ([zcdp_to_dp], Canonne–Kamath–Steinke 2020). All of
    it holds order by order ([order_post_processing], [order_composition]); from one inequality, [bernoulli]. *)

From Holdfast Require Export Laplace.
Set Implicit Arguments.
Unset Strict Implicit.

Definition moment {A} (a : R) (p p' : A -> R) (v : A) := p v * Rpower (p v / p' v) (a - 1).
(** p against p' at one order: no output of p is impossible for p', and the moment is at most e^((a-1) c). *)
Definition order {A} (a c : R) (p p' : A -> R) :=
  (forall v, 0 < p v -> 0 < p' v) /\ summable (moment a p p') /\ sum (moment a p p') <= exp ((a - 1) * c).
Definition zcdp {X A} (near : X -> X -> Prop) (rho : R) (M : X -> A -> R) :=
  forall x x', near x x' -> forall a, 1 < a -> order a (a * rho) (M x) (M x').

Lemma Rpower_pos x y : 0 < Rpower x y.
Proof. apply exp_pos. Qed.

Lemma moment_nonneg {A} a (p p' : A -> R) v : 0 <= p v -> 0 <= moment a p p' v.
Proof. intros H. apply Rmult_le_pos; [exact H | left; apply Rpower_pos]. Qed.

Lemma bernoulli y c : 0 < y -> 0 < c -> y + c * (y - 1) <= y * Rpower y c.
Proof.
  intros Y C. assert (L : 1 - / y <= ln y).
  { assert (I : 0 < / y) by (now apply Rinv_0_lt_compat). assert (E := exp_ineq1_le (/ y - 1)).
    assert (ln (/ y) <= / y - 1).
    { rewrite <- (ln_exp (/ y - 1)). destruct (Rle_lt_or_eq_dec (/ y) (exp (/ y - 1))) as [H | H]; [lra | left; now apply ln_increasing | right; now rewrite <- H]. }
    rewrite ln_Rinv in H by exact Y. lra. }
  assert (P : 1 + c * (1 - / y) <= Rpower y c).
  { eapply Rle_trans; [apply exp_ineq1_le |]. apply exp_le. apply Rmult_le_compat_l; lra. }
  replace (y + c * (y - 1)) with (y * (1 + c * (1 - / y))) by (field; lra). apply Rmult_le_compat_l; lra.
Qed.

(** The tangent at t. *)
Lemma tangent a t x y : 1 < a -> 0 < t -> 0 <= x -> 0 <= y -> (0 < x -> 0 < y) ->
  a * Rpower t (a - 1) * x <= x * Rpower (x / y) (a - 1) + (a - 1) * (t * Rpower t (a - 1) * y).
Proof.
  intros A T [X | <-] Y P; [| assert (0 <= t * Rpower t (a - 1) * y) by (generalize (Rpower_pos t (a - 1)); intros; apply Rmult_le_pos; nra); nra].
  specialize (P X). assert (Z : 0 < x / (t * y)) by (apply Rdiv_lt_0_compat; nra).
  assert (B := @bernoulli (x / (t * y)) (a - 1) Z ltac:(lra)).
  assert (E : Rpower (x / y) (a - 1) = Rpower t (a - 1) * Rpower (x / (t * y)) (a - 1)).
  { rewrite Rpower_mult_distr; auto. f_equal. field. lra. }
  rewrite E. apply Rmult_le_compat_l with (r := t * y * Rpower t (a - 1)) in B;
    [| apply Rmult_le_pos; [nra | left; apply Rpower_pos]].
  replace (t * y * Rpower t (a - 1) * (x / (t * y) * Rpower (x / (t * y)) (a - 1)))
    with (x * (Rpower t (a - 1) * Rpower (x / (t * y)) (a - 1))) in B by (field; lra).
  replace (t * y * Rpower t (a - 1) * (x / (t * y) + (a - 1) * (x / (t * y) - 1)))
    with (a * Rpower t (a - 1) * x - (a - 1) * (t * Rpower t (a - 1) * y)) in B by (field; lra). lra.
Qed.

(** The tangent that touches e^eps y: what is above it is at most a moment. *)
Lemma above_tangent a eps x y : 1 < a -> 0 <= x -> 0 <= y -> (0 < x -> 0 < y) ->
  x <= exp eps * y + exp (- ((a - 1) * eps)) * Rpower (1 - / a) (a - 1) / a * (x * Rpower (x / y) (a - 1)).
Proof.
  intros A1 X Y P. set (k := exp (- ((a - 1) * eps)) * Rpower (1 - / a) (a - 1) / a).
  assert (I : 0 < / a < 1) by (split; [apply Rinv_0_lt_compat; lra | rewrite <- Rinv_1; apply Rinv_lt_contravar; lra]).
  assert (K : 0 <= k) by (unfold k, Rdiv; repeat apply Rmult_le_pos; try (left; apply exp_pos); lra).
  set (t := exp eps * (/ (1 - / a))).
  assert (T0 : 0 < t) by (apply Rmult_lt_0_compat; [apply exp_pos | apply Rinv_0_lt_compat; lra]).
  assert (G := @tangent a t x y A1 T0 X Y P).
  assert (Kt : k * (a * Rpower t (a - 1)) = 1).
  { unfold k, t. rewrite <- Rpower_mult_distr by (apply exp_pos || apply Rinv_0_lt_compat; lra).
    assert (R1 : Rpower (exp eps) (a - 1) = exp ((a - 1) * eps)) by (unfold Rpower; now rewrite ln_exp).
    assert (R2 : Rpower (1 - / a) (a - 1) * Rpower (/ (1 - / a)) (a - 1) = 1).
    { rewrite Rpower_mult_distr, Rinv_r by (try apply Rinv_0_lt_compat; lra). unfold Rpower. now rewrite ln_1, Rmult_0_r, exp_0. }
    assert (R3 : exp (- ((a - 1) * eps)) * exp ((a - 1) * eps) = 1) by (rewrite <- exp_plus; replace (_ + _) with 0 by lra; apply exp_0).
    rewrite R1. transitivity ((exp (- ((a - 1) * eps)) * exp ((a - 1) * eps)) * (Rpower (1 - / a) (a - 1) * Rpower (/ (1 - / a)) (a - 1))).
    - field. lra.
    - rewrite R2, R3. lra. }
  assert (Tk : (a - 1) * t = a * exp eps) by (unfold t; field; lra).
  apply Rmult_le_compat_l with (r := k) in G; [| exact K].
  replace (k * (a * Rpower t (a - 1) * x)) with (k * (a * Rpower t (a - 1)) * x) in G by ring. rewrite Kt in G.
  replace (k * (x * Rpower (x / y) (a - 1) + (a - 1) * (t * Rpower t (a - 1) * y)))
    with (k * (x * Rpower (x / y) (a - 1)) + (k * (a * Rpower t (a - 1))) * (((a - 1) * t) * / a * y)) in G by (field; lra).
  rewrite Kt, Tk in G. replace (1 * (a * exp eps * / a * y)) with (exp eps * y) in G by (field; lra). lra.
Qed.

(** ** Post-processing *)
Theorem order_post_processing {A B} (h : A -> B) a c (p p' : A -> R) : 1 < a -> law p -> law p' ->
  order a c p p' -> order a c (image h p) (image h p').
Proof.
  intros A1 L L' (P & S & E). set (part (f : A -> R) b v := f v * ind (h v = b)).
  assert (SP : forall f b, summable f -> summable (part f b)) by (intros f b F; apply (sum_fibres h F)).
  assert (I : forall f b, image h f b = sum (part f b)) by reflexivity.
  assert (Pos : forall b, 0 < image h p b -> 0 < image h p' b).
  { intros b H. destruct (Rle_lt_dec (image h p' b) 0) as [Z | Z]; [exfalso | exact Z].
    enough (image h p b <= 0) by lra. rewrite I. rewrite <- (@sum_zero A). apply sum_le; [| apply summable_zero]. intros v.
    generalize (proj1 (SP p b (proj1 L)) v). intros N. split; [exact N |]. unfold part in *. decide_ind (h v = b); [| lra].
    destruct (proj1 (proj1 L) v) as [X | <-]; [| lra]. specialize (P v X). exfalso.
    assert (T := sum_term v (SP p' b (proj1 L'))). rewrite <- I in T. unfold part in T. rewrite ind_true in T by assumption. lra. }
  assert (Q : forall b, moment a (image h p) (image h p') b <= sum (part (moment a p p') b)).
  { intros b. assert (N : 0 <= image h p b) by (rewrite I; apply sum_nonneg, SP, L).
    destruct N as [N | Z]; [| unfold moment; rewrite <- Z, Rmult_0_l; apply sum_nonneg, SP, S].
    specialize (Pos b N). set (t := image h p b / image h p' b). assert (T : 0 < t) by (now apply Rdiv_lt_0_compat).
    set (k := Rpower t (a - 1)). assert (K : 0 < k) by apply Rpower_pos.
    assert (U : a * k * image h p b <= sum (part (moment a p p') b) + (a - 1) * (t * k) * image h p' b).
    { assert (C1 : 0 <= a * k) by (apply Rmult_le_pos; lra). assert (C2 : 0 <= (a - 1) * (t * k)) by (clearbody k t; repeat apply Rmult_le_pos; lra).
      assert (S1 := SP p b (proj1 L)). assert (S2 := SP p' b (proj1 L')). assert (S3 := SP _ b S).
      rewrite !I. rewrite <- (sum_scale C1 S1), <- (sum_scale C2 S2), <- sum_plus by auto using summable_scale.
      apply sum_le; [| auto using summable_plus, summable_scale].
      intros v. assert (Z := @tangent a t (p v) (p' v) A1 T (proj1 (proj1 L) v) (proj1 (proj1 L') v) (P v)). fold k in Z.
      split; [apply Rmult_le_pos; [exact C1 | apply S1] |]. unfold part, moment. decide_ind (h v = b); lra. }
    unfold moment at 1. fold t. fold k. replace (t * k) with (k * t) in U by ring. unfold t in U.
    replace ((a - 1) * (k * (image h p b / image h p' b)) * image h p' b) with ((a - 1) * k * image h p b) in U by (field; lra). lra. }
  destruct (sum_fibres h S) as (_ & SF & EF).
  assert (N : forall b, 0 <= moment a (image h p) (image h p') b <= sum (part (moment a p p') b)).
  { intros b. split; [| apply Q]. apply moment_nonneg. rewrite I. apply sum_nonneg, SP, L. }
  split; [exact Pos |]. split; [now apply summable_le with (1 := N) |].
  eapply Rle_trans; [apply (sum_le N SF) |]. unfold part. now rewrite EF.
Qed.

Section Mechanisms.
Context {X : Type} (near : X -> X -> Prop).

Theorem zcdp_post_processing {A B} (M : X -> A -> R) (h : A -> B) rho :
  (forall x, law (M x)) -> zcdp near rho M -> zcdp near rho (fun x => image h (M x)).
Proof. intros L H x x' N a A1. apply order_post_processing; auto. Qed.

Theorem zcdp_imaging {A} (M : X -> A -> R) (nearest : A -> A) rho :
  (forall x, law (M x)) -> zcdp near rho M -> zcdp near rho (fun x => image nearest (M x)).
Proof. apply zcdp_post_processing. Qed.

Theorem zcdp_beside_published {A B F} (M : X -> A -> R) (exact : X -> F) (h : F -> A -> B) rho :
  (forall x, law (M x)) -> (forall x x', near x x' -> exact x = exact x') ->
  zcdp near rho M -> zcdp near rho (fun x => image (h (exact x)) (M x)).
Proof. intros L E H x x' N a A1. rewrite (E x x' N). apply order_post_processing; auto. Qed.

(** ** Composition *)
Theorem order_composition {A B} a c c' (p p' : A -> R) (k k' : A -> B -> R) : 1 < a -> law p -> law p' ->
  (forall u, law (k u)) -> (forall u, law (k' u)) -> order a c p p' -> (forall u, order a c' (k u) (k' u)) ->
  order a (c + c') (joint p k) (joint p' k').
Proof.
  intros A1 L L' K K' (P & S & E) O.
  assert (Q : forall w, moment a (joint p k) (joint p' k') w = moment a p p' (fst w) * moment a (k (fst w)) (k' (fst w)) (snd w)).
  { intros [u v]. unfold moment, joint. simpl. destruct (proj1 (proj1 L) u) as [X0 | <-]; [| lra].
    destruct (proj1 (proj1 (K u)) v) as [Y | <-]; [| lra]. generalize (P u X0) (proj1 (O u) v Y). intros.
    replace (p u * k u v / (p' u * k' u v)) with (p u / p' u * (k u v / k' u v)) by (field; lra).
    rewrite <- Rpower_mult_distr by (now apply Rdiv_lt_0_compat). ring. }
  assert (D : doubly (fun u v => moment a p p' u * moment a (k u) (k' u) v)).
  { apply doubly_scale with (exp ((a - 1) * c')); auto; try apply O. left; apply exp_pos. }
  destruct (sum_pairs D) as [SJ EJ]. apply functional_extensionality in Q. split; [| rewrite Q; split; [exact SJ |]].
  - intros [u v]. unfold joint. simpl. intros H. destruct (proj1 (proj1 L) u) as [X0 | Z]; [| rewrite <- Z in H; lra].
    destruct (proj1 (proj1 (K u)) v) as [Y | Z]; [| rewrite <- Z in H; lra]. apply Rmult_lt_0_compat; [auto | now apply O].
  - rewrite EJ. apply Rle_trans with (exp ((a - 1) * c') * sum (moment a p p')).
    + rewrite <- sum_scale by (auto; left; apply exp_pos). apply sum_le; [| apply summable_scale; auto; left; apply exp_pos].
      intros u. rewrite sum_scale by (apply S || apply O). generalize (proj1 S u) (proj2 (proj2 (O u))) (sum_nonneg (proj1 (proj2 (O u)))). nra.
    + rewrite Rmult_plus_distr_l, exp_plus, Rmult_comm. apply Rmult_le_compat_r; [left; apply exp_pos | exact E].
Qed.

Theorem zcdp_composition {A B} (M : X -> A -> R) (M' : A -> X -> B -> R) rho rho' :
  (forall x, law (M x)) -> (forall u x, law (M' u x)) -> zcdp near rho M -> (forall u, zcdp near rho' (M' u)) ->
  zcdp near (rho + rho') (fun x => joint (M x) (fun u => M' u x)).
Proof.
  intros L L' H H' x x' N a A1. rewrite Rmult_plus_distr_l. apply order_composition; auto. intros u. now apply H'.
Qed.

(** ** (ε, δ) from one order *)
Theorem zcdp_to_dp {A} (M : X -> A -> R) rho eps a : (forall x, law (M x)) -> 1 < a -> zcdp near rho M ->
  private near eps (exp ((a - 1) * (a * rho - eps)) * Rpower (1 - / a) (a - 1) / a) M.
Proof.
  intros L A1 H x x' N T. destruct (H x x' N a A1) as (P & S & E).
  set (k := exp (- ((a - 1) * eps)) * Rpower (1 - / a) (a - 1) / a).
  assert (I : 0 < / a < 1) by (split; [apply Rinv_0_lt_compat; lra | rewrite <- Rinv_1; apply Rinv_lt_contravar; lra]).
  assert (K : 0 <= k) by (unfold k, Rdiv; repeat apply Rmult_le_pos; try (left; apply exp_pos); lra).
  assert (Pt : forall v, M x v <= exp eps * M x' v + k * moment a (M x) (M x') v)
    by (intros v; apply above_tangent; [exact A1 | apply L | apply L | apply P]).
  assert (D : exp ((a - 1) * (a * rho - eps)) * Rpower (1 - / a) (a - 1) / a = k * exp ((a - 1) * (a * rho))).
  { unfold k. replace ((a - 1) * (a * rho - eps)) with (- ((a - 1) * eps) + (a - 1) * (a * rho)) by ring. rewrite exp_plus. field. lra. }
  rewrite D. apply Rle_trans with (exp eps * prob (M x') T + k * sum (moment a (M x) (M x'))); [| generalize (Rmult_le_compat_l k _ _ K E); lra].
  assert (S' : summable (fun v => M x' v * ind (T v))) by (apply summable_test; [apply L | apply test_ind]).
  unfold prob, expect. rewrite <- !sum_scale, <- sum_plus; auto using summable_scale; try (left; apply exp_pos); try (apply summable_scale; auto; left; apply exp_pos).
  apply sum_le; [| apply summable_plus; apply summable_scale; auto; left; apply exp_pos]. intros v.
  generalize (ind_range (T v)) (proj1 (proj1 (L x)) v) (Pt v) (Rmult_le_pos _ _ K (proj1 S v)). intros J X0 G Z. split; [apply Rmult_le_pos; lra |].
  decide_ind (T v); lra.
Qed.
End Mechanisms.

(** Conditioning: keep the outputs in a set and divide by their weight.

    Mechanisms are given by weights w(x, a), not yet divided by their sums; [given w S] is the law of an output given S.
    Proved: the price of conditioning is the growth of the normaliser ([price_of_conditioning]); pure ε becomes at most
    2ε ([at_most_twice], TV after Def 9); the law given a union of two sets that exclude each other is the mixture of the
    laws given each, with weights that depend on the data ([union_is_a_mixture], TV Thm 12 (1)), and each side pays its
    ε and the growth of its weight ([disjoint_union], TV Thm 12 (2) as corrected); what is published exactly with
    probability 1 changes nothing ([given_all]). *)

From Holdfast Require Export Laws.
Set Implicit Arguments.
Unset Strict Implicit.

Section Given.
Context {A : Type}.
Implicit Types (w : A -> R) (S : A -> Prop).

Definition normal w (a : A) := w a / sum w.
Definition mass w S := sum (fun a => w a * ind (S a)).
Definition given w S (a : A) := w a * ind (S a) / mass w S.

Lemma law_normal w : summable w -> 0 < sum w -> law (normal w).
Proof.
  intros W P. assert (I : 0 <= / sum w) by (left; now apply Rinv_0_lt_compat).
  assert (E : normal w = (fun a => / sum w * w a)) by (apply functional_extensionality; intros; unfold normal; lra).
  rewrite E. split; [now apply summable_scale |]. rewrite sum_scale by assumption. apply Rinv_l. lra.
Qed.

Lemma law_given w S : summable w -> 0 < mass w S -> law (given w S).
Proof. intros W. apply law_normal. auto. Qed.

Lemma mass_positive w S a : summable w -> S a -> 0 < w a -> 0 < mass w S.
Proof.
  intros W H P. apply Rlt_le_trans with (w a * ind (S a)); [rewrite ind_true by exact H; lra |].
  apply (sum_term (f := fun a => w a * ind (S a)) a). auto.
Qed.

Lemma given_normal w S a : summable w -> 0 < sum w -> 0 < mass w S -> given (normal w) S a = given w S a.
Proof.
  intros W P M. unfold given. assert (E : mass (normal w) S = / sum w * mass w S).
  { unfold mass. rewrite <- sum_scale; auto; [| left; now apply Rinv_0_lt_compat].
    apply sum_ext. intros b. unfold normal. lra. }
  rewrite E. unfold normal. field. lra.
Qed.

Lemma given_all w a : given w (fun _ => True) a = normal w a.
Proof.
  unfold given, normal, mass. rewrite ind_true, Rmult_1_r by exact I. now rewrite (sum_ext (g := w)) by (intros; lra).
Qed.
End Given.

Section Price.
Context {X A : Type} (near : X -> X -> Prop) (w : X -> A -> R) (S : X -> A -> Prop).
Hypothesis W : forall x, summable (w x).
Hypothesis P : forall x, 0 < mass (w x) (S x).
(** Neighbours share the set; it may be read from the data otherwise. *)
Hypothesis shared : forall x x', near x x' -> forall a, S x a <-> S x' a.

Theorem price_of_conditioning eps gamma :
  (forall x x', near x x' -> forall a, w x a <= exp eps * w x' a) ->
  (forall x x', near x x' -> mass (w x') (S x') <= exp gamma * mass (w x) (S x)) ->
  pure near (eps + gamma) (fun x => given (w x) (S x)).
Proof.
  intros E G. apply pure_pointwise; [auto using law_given |]. intros x x' N a. unfold given.
  rewrite (ind_iff (shared N a)), exp_plus. specialize (E x x' N a). specialize (G x x' N).
  set (c := mass (w x) (S x)) in *. set (c' := mass (w x') (S x')) in *.
  assert (0 < c /\ 0 < c') as [C C'] by (split; apply P).
  apply Rmult_le_reg_r with (c * c'); [nra |]. generalize (ind_range (S x' a)) (proj1 (W x) a) (proj1 (W x') a). intros.
  replace (w x a * _ / c * (c * c')) with (w x a * c' * ind (S x' a)) by (field; lra).
  replace (_ * (c * c')) with ((exp eps * w x' a) * (exp gamma * c) * ind (S x' a)) by (field; lra).
  apply Rmult_le_compat_r; [lra |]. apply Rmult_le_compat; try lra.
Qed.

Lemma mass_ratio eps : (forall x x', near x x' -> forall a, w x a <= exp eps * w x' a) ->
  forall x x', near x x' -> mass (w x) (S x) <= exp eps * mass (w x') (S x').
Proof.
  intros E x x' N. unfold mass. rewrite <- sum_scale; auto; [| left; apply exp_pos].
  apply sum_le; [| apply summable_scale; auto; left; apply exp_pos]. intros a.
  rewrite (ind_iff (shared N a)). generalize (E x x' N a) (ind_range (S x' a)) (proj1 (W x) a). nra.
Qed.

(** Any set that every dataset gives a positive weight. *)
Theorem at_most_twice eps : (forall x x', near x x' -> near x' x) ->
  (forall x x', near x x' -> forall a, w x a <= exp eps * w x' a) ->
  pure near (2 * eps) (fun x => given (w x) (S x)).
Proof.
  intros Y E. replace (2 * eps) with (eps + eps) by lra. apply price_of_conditioning; auto.
  intros x x' N. apply mass_ratio; auto.
Qed.
End Price.

(** ** Unions of sets that exclude each other (TV Thm 12) *)
Section Union.
Context {A : Type} (w : A -> R) (S T : A -> Prop).
Hypothesis W : summable w.
Hypothesis apart : forall a, ~ (S a /\ T a).

Lemma ind_union a : ind (S a \/ T a) = ind (S a) + ind (T a).
Proof.
  generalize (@apart a). intros. decide_ind (S a); decide_ind (T a).
  - tauto.
  - rewrite ind_true by tauto. lra.
  - rewrite ind_true by tauto. lra.
  - rewrite ind_false by tauto. lra.
Qed.

Lemma mass_union : mass w (fun a => S a \/ T a) = mass w S + mass w T.
Proof.
  unfold mass. rewrite <- sum_plus by auto. apply sum_ext. intros a. rewrite ind_union. lra.
Qed.

(** The share of the first side. *)
Definition share := mass w S / (mass w S + mass w T).

Theorem union_is_a_mixture a : 0 < mass w S -> 0 < mass w T ->
  given w (fun a => S a \/ T a) a = share * given w S a + (1 - share) * given w T a.
Proof. intros P Q. unfold given, share. rewrite mass_union, ind_union. field. lra. Qed.
End Union.

Theorem disjoint_union {X A} (near : X -> X -> Prop) (w : X -> A -> R) (S T : A -> Prop) eps epsS epsT gS gT :
  (forall x, summable (w x)) -> (forall a, ~ (S a /\ T a)) ->
  (forall x, 0 < mass (w x) S) -> (forall x, 0 < mass (w x) T) ->
  pure near epsS (fun x => given (w x) S) -> pure near epsT (fun x => given (w x) T) ->
  (forall x x', near x x' -> share (w x) S T <= exp gS * share (w x') S T) ->
  (forall x x', near x x' -> 1 - share (w x) S T <= exp gT * (1 - share (w x') S T)) ->
  epsS + gS <= eps -> epsT + gT <= eps ->
  pure near eps (fun x => given (w x) (fun a => S a \/ T a)).
Proof.
  intros W D P Q HS HT GS GT LS LT. rewrite pure_pointwise in HS, HT; auto using law_given.
  assert (E : forall e g, e + g <= eps -> exp g * exp e <= exp eps).
  { intros e g H. rewrite <- exp_plus, Rplus_comm. destruct H as [H | ->]; [left; now apply exp_increasing | right; reflexivity]. }
  apply pure_pointwise; [intros x; apply law_given; auto; rewrite mass_union by auto; specialize (P x); specialize (Q x); lra |].
  intros x x' N a. rewrite !union_is_a_mixture by auto.
  assert (B : forall y, 0 <= share (w y) S T <= 1).
  { intros y. unfold share. specialize (P y); specialize (Q y). split.
    - apply Rmult_le_pos; [lra | left; apply Rinv_0_lt_compat; lra].
    - apply Rmult_le_reg_r with (mass (w y) S + mass (w y) T); [lra |]. field_simplify; lra. }
  assert (G : forall y (U : A -> Prop), 0 < mass (w y) U -> 0 <= given (w y) U a).
  { intros y U H. now apply (proj1 (law_given (W y) H)). }
  specialize (GS x x' N); specialize (GT x x' N); specialize (HS x x' N a); specialize (HT x x' N a).
  rewrite Rmult_plus_distr_l. apply Rplus_le_compat.
  - apply Rle_trans with ((exp gS * share (w x') S T) * (exp epsS * given (w x') S a)).
    + apply Rmult_le_compat; auto; apply B.
    + generalize (E _ _ LS) (Rmult_le_pos _ _ (proj1 (B x')) (G x' S (P x'))). nra.
  - assert (0 <= 1 - share (w x') S T) by (generalize (B x'); lra).
    apply Rle_trans with ((exp gT * (1 - share (w x') S T)) * (exp epsT * given (w x') T a)).
    + apply Rmult_le_compat; auto; generalize (B x); lra.
    + generalize (E _ _ LT) (Rmult_le_pos _ _ H (G x' T (Q x'))). nra.
Qed.

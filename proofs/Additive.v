(** Noise that is added: M(x) = q(x) + U, with U of weight w on a commutative group (whole numbers, vectors of them).

    Proved: conditioning on equalities keeps ε, because the normalisers of all datasets agree ([given_equalities], TV
    Lemma 10, for equalities that hold of every dataset; [given_invariants] for equalities read from the data, between
    neighbours that share them); what is left of the output by an additive map, such as the projection onto what exact
    figures leave open, is private against all neighbours if the change that is left can be made by noise
    ([subspace_scope], SDP Def 5: with e = d for projected noise, with the cheapest e for an oblique projection). *)

From Holdfast Require Export Conditioning.
Set Implicit Arguments.
Unset Strict Implicit.

Class Group (V : Type) := {
  zero : V; add : V -> V -> V; opp : V -> V;
  add_comm : forall u v, add u v = add v u;
  add_assoc : forall u v t, add u (add v t) = add (add u v) t;
  add_zero : forall u, add u zero = u;
  add_opp : forall u, add u (opp u) = zero }.
Definition sub {V} `{Group V} (u v : V) := add u (opp v).

#[global, program] Instance group_Z : Group Z := {| zero := 0%Z; add := Z.add; opp := Z.opp |}.
Solve All Obligations with intros; lia.
#[global, program] Instance group_unit : Group unit := {| zero := tt; add _ _ := tt; opp _ := tt |}.
Solve All Obligations with repeat intros []; reflexivity.
#[global, program] Instance group_pair {U V} `{Group U} `{Group V} : Group (U * V) :=
  {| zero := (zero, zero); add u v := (add (fst u) (fst v), add (snd u) (snd v)); opp u := (opp (fst u), opp (snd u)) |}.
Next Obligation. f_equal; apply add_comm. Qed.
Next Obligation. f_equal; apply add_assoc. Qed.
Next Obligation. f_equal; apply add_zero. Qed.
Next Obligation. f_equal; apply add_opp. Qed.

(** An additive map: a matrix of whole numbers, a projection. *)
Definition additive {V W} `{Group V} `{Group W} (h : V -> W) := forall u v, h (add u v) = add (h u) (h v).

Section Groups.
Context {V : Type} `{Group V}.
Implicit Types u v t : V.

Lemma sub_add u v : add (sub u v) v = u.
Proof. unfold sub. rewrite <- add_assoc, (add_comm (opp v)), add_opp. apply add_zero. Qed.

Lemma add_sub u v : sub (add u v) v = u.
Proof. unfold sub. rewrite <- add_assoc, add_opp. apply add_zero. Qed.

Lemma add_cancel u v t : add u t = add v t -> u = v.
Proof. intros E. rewrite <- (add_sub u t), E. apply add_sub. Qed.

Lemma sub_self u : sub u u = zero.
Proof. apply add_opp. Qed.

Lemma sub_zero_eq u v : sub u v = zero -> u = v.
Proof. intros E. rewrite <- (sub_add u v), E, add_comm. apply add_zero. Qed.

Lemma sub_sub u v t : sub u v = sub (sub u t) (sub v t).
Proof.
  apply add_cancel with v. rewrite sub_add. rewrite <- (sub_add v t) at 2.
  rewrite add_assoc, !sub_add. reflexivity.
Qed.

(** Moving a weight does not change its sum. *)
Lemma sum_shift (w : V -> R) t : summable w -> summable (fun v => w (sub v t)) /\ sum (fun v => w (sub v t)) = sum w.
Proof. intros W. apply sum_bijection with (k := fun v => add v t); auto using sub_add, add_sub. Qed.
End Groups.

Lemma additive_sub {V W} `{Group V} `{Group W} (h : V -> W) u v : additive h -> h (sub u v) = sub (h u) (h v).
Proof. intros A. apply add_cancel with (h v). rewrite <- A, !sub_add. reflexivity. Qed.

Section Additive.
Context {X V : Type} `{Group V} (near : X -> X -> Prop) (q : X -> V) (w : V -> R).
Hypothesis positive : 0 < w zero.

(** The weights of q(x) + U. *)
Definition around (x : X) (v : V) := w (sub v (q x)).

Lemma around_summable x : summable w -> summable (around x).
Proof. intros W. apply sum_shift, W. Qed.

Theorem additive_noise eps : summable w ->
  (forall x x', near x x' -> forall u, w (sub u (sub (q x) (q x'))) <= exp eps * w u) ->
  pure near eps (fun x => normal (around x)).
Proof.
  intros W E. assert (S : 0 < sum w) by (apply Rlt_le_trans with (w zero); auto; now apply sum_term).
  assert (Q : forall x, sum (around x) = sum w) by (intros; now apply sum_shift).
  apply pure_pointwise; [intros x; apply law_normal; [now apply around_summable | now rewrite Q] |].
  intros x x' N v. unfold normal. rewrite !Q. unfold around.
  rewrite (sub_sub v (q x) (q x')). apply Rmult_le_reg_r with (sum w); [exact S |].
  replace (_ / sum w * sum w) with (w (sub (sub v (q x')) (sub (q x) (q x')))) by (field; lra).
  replace (_ * sum w) with (exp eps * w (sub v (q x'))) by (field; lra). apply E, N.
Qed.

(** TV Lemma 10. The noise is summable on the equalities; it need not be elsewhere. *)
Section Equalities.
Context {W : Type} `{Group W} (C : V -> W) (A : additive C).
Let open u := C u = zero.
Hypothesis S : summable (fun u => w u * ind (open u)).

Lemma zero_open : open zero.
Proof. apply add_cancel with (C zero). rewrite <- A, add_zero, add_comm, add_zero. reflexivity. Qed.

Lemma coset x v : C v = C (q x) <-> open (sub v (q x)).
Proof.
  unfold open. rewrite additive_sub by exact A. split; [intros ->; apply sub_self | apply sub_zero_eq].
Qed.

(** The weight of C v = C q(x) around q(x) is the same for every dataset. *)
Lemma normalisers_agree x :
  summable (fun v => around x v * ind (C v = C (q x))) /\
  mass (around x) (fun v => C v = C (q x)) = mass w open.
Proof.
  destruct (sum_shift (q x) S) as [T E]. unfold mass.
  replace (fun v => around x v * ind (C v = C (q x))) with (fun v => w (sub v (q x)) * ind (open (sub v (q x)))); auto.
  apply functional_extensionality. intros v. unfold around. f_equal. apply ind_iff. symmetry. apply coset.
Qed.

Theorem given_invariants eps : (forall u, 0 <= w u) ->
  (forall x x', near x x' -> C (q x) = C (q x')) ->
  (forall x x', near x x' -> forall u, w (sub u (sub (q x) (q x'))) <= exp eps * w u) ->
  pure near eps (fun x => given (around x) (fun v => C v = C (q x))).
Proof.
  intros P I E. assert (Z : 0 < mass w open).
  { apply Rlt_le_trans with (w zero * ind (open zero)); [rewrite ind_true by exact zero_open; lra |].
    exact (sum_term zero S). }
  apply pure_pointwise.
  - intros x. destruct (normalisers_agree x) as [T Q]. unfold given. unfold mass in *. rewrite Q in *.
    rewrite <- Q. apply law_normal; auto. rewrite Q. exact Z.
  - intros x x' N v. unfold given. rewrite !(proj2 (normalisers_agree _)), (I x x' N).
    set (c := mass w open) in *. apply Rmult_le_reg_r with c; [exact Z |].
    replace (_ / c * c) with (around x v * ind (C v = C (q x'))) by (field; lra).
    replace (_ * c) with (exp eps * around x' v * ind (C v = C (q x'))) by (field; lra).
    apply Rmult_le_compat_r; [apply ind_range |]. unfold around. rewrite (sub_sub v (q x) (q x')). apply E, N.
Qed.

Theorem given_equalities b eps : (forall u, 0 <= w u) -> (forall x, C (q x) = b) ->
  (forall x x', near x x' -> forall u, w (sub u (sub (q x) (q x'))) <= exp eps * w u) ->
  pure near eps (fun x => given (around x) (fun v => C v = b)).
Proof.
  intros P I E. assert (G : pure near eps (fun x => given (around x) (fun v => C v = C (q x)))).
  { apply given_invariants; auto. intros. now rewrite !I. }
  intros x x' N. specialize (G x x' N). cbv beta in G. now rewrite !I in G.
Qed.
End Equalities.

(** Subspace scope: h is what exact figures leave of an output. *)
Theorem subspace_scope {W : Type} `{Group W} (h : V -> W) eps : additive h -> summable w ->
  (forall x x', near x x' -> exists e, h e = h (sub (q x) (q x')) /\ forall u, w (sub u e) <= exp eps * w u) ->
  pure near eps (fun x => image h (normal (around x))).
Proof.
  intros A S D. assert (P : 0 < sum w) by (apply Rlt_le_trans with (w zero); auto; now apply sum_term).
  assert (Q : forall x, sum (around x) = sum w) by (intros; now apply sum_shift).
  assert (L : forall x, law (normal (around x))) by (intros x; apply law_normal; [now apply around_summable | now rewrite Q]).
  apply pure_pointwise; [intros; now apply law_image |]. intros x x' N y.
  destruct (D x x' N) as (e & He & E). set (d := sub (q x) (q x')) in *.
  unfold image, bind. set (f z v := normal (around z) v * ind (h v = y)). change (sum (f x) <= exp eps * sum (f x')).
  assert (F : forall z, summable (f z)) by (intros; apply summable_test; [apply L | apply (test_ind (fun v => h v = y))]).
  destruct (sum_shift (sub e d) (F x)) as [_ <-]. rewrite <- sum_scale by (auto; left; apply exp_pos).
  apply sum_le; [| apply summable_scale; auto; left; apply exp_pos]. intros v. split; [apply F |].
  assert (K : h (sub v (sub e d)) = h v).
  { rewrite (additive_sub v _ A), (additive_sub e d A), He, sub_self. apply add_cancel with zero. now rewrite sub_add, add_zero. }
  unfold f, normal. rewrite K, !Q. unfold around.
  replace (sub (sub v (sub e d)) (q x)) with (sub (sub v (q x')) e).
  - generalize (E (sub v (q x'))) (ind_range (h v = y)) (Rinv_0_lt_compat _ P). unfold Rdiv. intros H1 H2 H3.
    rewrite <- !Rmult_assoc. apply Rmult_le_compat_r; [lra |]. apply Rmult_le_compat_r; [lra | exact H1].
  - rewrite <- (sub_add (q x) (q x')). fold d. apply add_cancel with (add d (q x')). rewrite sub_add.
    apply add_cancel with (sub e d). rewrite sub_add, <- add_assoc, (add_comm (add d _)), (add_assoc (sub e d)), sub_add.
    now rewrite add_assoc, !sub_add.
Qed.

(** Where noise cannot make the change that is left, an output tells the two datasets apart. *)
Theorem supports_disjoint {W : Type} `{Group W} (h : V -> W) eps x x' : additive h -> summable w -> near x x' ->
  (forall e, 0 < w e -> h e <> h (sub (q x) (q x'))) -> ~ pure near eps (fun x => image h (normal (around x))).
Proof.
  intros A S N D G. assert (P : 0 < sum w) by (apply Rlt_le_trans with (w zero); auto; now apply sum_term).
  assert (Q : forall x, sum (around x) = sum w) by (intros; now apply sum_shift).
  assert (L : forall x, law (normal (around x))) by (intros; apply law_normal; [now apply around_summable | now rewrite Q]).
  rewrite pure_pointwise in G by (intros; now apply law_image). specialize (G x x' N (h (q x))).
  replace (image h (normal (around x')) (h (q x))) with 0 in G.
  - assert (T := @sum_term _ (fun v => normal (around x) v * ind (h v = h (q x))) (q x)
      ltac:(apply summable_test; [apply L | apply (test_ind (fun v => h v = h (q x)))])).
    cbv beta in T. rewrite ind_true in T by reflexivity. unfold normal at 1, around at 1 in T. rewrite sub_self, Q in T.
    assert (0 < w zero / sum w) by (now apply Rdiv_lt_0_compat). unfold image, bind in G. lra.
  - symmetry. unfold image, bind. rewrite <- (@sum_zero V). apply sum_ext. intros v.
    destruct (classic (h v = h (q x))) as [Hv | Hv]; [| rewrite ind_false by exact Hv; lra]. unfold normal, around. destruct (proj1 S (sub v (q x'))) as [Z | <-]; [| unfold Rdiv; ring].
    destruct (D _ Z). now rewrite (additive_sub v _ A), (additive_sub (q x) _ A), Hv.
Qed.
End Additive.

(** Statements of "Two Views of Constrained Differential Privacy" that are false as printed, each with a finite case.

    [theorem_12_2]: both conditional mechanisms are 0-private, the one given the union of the two sets is not even
    ln 8-private (randomized response; ln 9 is what holds).
    [lemma_11_2]: M given C is 0-private, h∘M given C is not even ln(5/4)-private, and it is not h of (M given C).
    [lemma_15]: M moved onto C is 0-private, h∘M moved onto C tells datasets apart with certainty. *)

From Holdfast Require Import Conditioning.
Set Implicit Arguments.
Unset Strict Implicit.

Lemma sum_finite {A} (f : A -> R) l : NoDup l -> (forall a, 0 <= f a) -> (forall a, ~ In a l -> f a = 0) ->
  summable f /\ sum f = lsum f l.
Proof.
  intros D N O. assert (L : forall u, NoDup u -> lsum f u <= lsum f l).
  { assert (H : forall u, NoDup u -> exists v, NoDup v /\ incl v l /\ incl v u /\ lsum f u = lsum f v).
    { induction 1 as [| a u Ha Hu (v & Dv & I & J & E)]; [exists []; repeat split; try constructor; intros ? [] |].
      destruct (classic (In a l)).
      - exists (a :: v). repeat split.
        + constructor; auto.
        + intros b [<- | Hb]; auto.
        + intros b [<- | Hb]; simpl; auto.
        + simpl. now rewrite E.
      - exists v. repeat split; auto; [intros b Hb; simpl; auto |]. simpl. rewrite O, E by assumption. lra. }
    intros u Hu. destruct (H u Hu) as (v & Dv & I & _ & ->). now apply lsum_incl. }
  assert (S : summable f) by exact (summable_by N L). split; [exact S |].
  apply Rle_antisym; [now apply sum_least | now apply sum_upper].
Qed.

Ltac numbers := cbn -[IZR Rdiv Rmult Rplus Rle Rlt]; lra.

Ltac truths := repeat match goal with
  | |- context [ind ?P] => first [rewrite (@ind_true P) by (simpl; intuition (discriminate || lia || congruence))
                                | rewrite (@ind_false P) by (simpl; intuition (discriminate || lia || congruence))] end.

Lemma sum_bool (f : bool -> R) : (forall a, 0 <= f a) -> summable f /\ sum f = f true + f false.
Proof.
  intros N. destruct (@sum_finite _ f [true; false]) as [S E]; auto.
  - repeat constructor; simpl; intuition discriminate.
  - intros []; simpl; tauto.
  - split; [exact S |]. rewrite E. simpl. lra.
Qed.

(** ** Theorem 12 (2): randomized response *)
Definition response (x a : bool) : R := if Bool.eqb x a then 9 / 10 else 1 / 10.
Definition other (x x' : bool) := x <> x'.

Lemma response_range x a : 0 < response x a.
Proof. destruct x, a; numbers. Qed.

Lemma response_mass x (S : bool -> Prop) :
  mass (response x) S = response x true * ind (S true) + response x false * ind (S false).
Proof.
  apply (sum_bool (f := fun a => response x a * ind (S a))). intros a.
  generalize (response_range x a) (ind_range (S a)). nra.
Qed.

Lemma response_summable x : summable (response x).
Proof. apply sum_bool. intros a. left. apply response_range. Qed.

Theorem theorem_12_2 :
  pure other 0 (fun x => given (response x) (fun a => a = true)) /\
  pure other 0 (fun x => given (response x) (fun a => a = false)) /\
  ~ pure other (ln 8) (fun x => given (response x) (fun a => a = true \/ a = false)).
Proof.
  assert (P : forall x (S : bool -> Prop) a, S a -> 0 < mass (response x) S).
  { intros x S a H. apply mass_positive with a; auto using response_summable, response_range. }
  assert (O : forall b, pure other 0 (fun x => given (response x) (fun a => a = b))).
  { intros b. apply pure_pointwise; [intros x; apply law_given; [apply response_summable | now apply P with b] |].
    assert (E : forall x a, given (response x) (fun a => a = b) a = ind (a = b)).
    { intros x a. generalize (response_range x b). intros. unfold given, mass.
      rewrite (proj2 (sum_single (b := b) (Rlt_le _ _ H))). decide_ind (a = b); [subst; field; lra | unfold Rdiv; lra]. }
    intros x x' _ a. rewrite !E, exp_0. lra. }
  split; [apply O | split; [apply O |]].
  rewrite pure_pointwise by (intros x; apply law_given; [apply response_summable | apply P with true; auto]).
  assert (M : forall x, mass (response x) (fun a => a = true \/ a = false) = 1).
  { intros x. rewrite response_mass. truths. destruct x; numbers. }
  intros H. specialize (H true false ltac:(discriminate) true). unfold given in H. rewrite !M, exp_ln in H by lra.
  revert H. truths. numbers.
Qed.

(** ** Lemma 11 (2): outputs -1, 0, 1; C: not negative; h takes -1 to 0 *)
Definition uneven (x : bool) (a : Z) : R :=
  match a with 0%Z | 1%Z => if x then 1 / 4 else 1 / 2 | (-1)%Z => if x then 1 / 2 else 0 | _ => 0 end.
Definition h11 (a : Z) : Z := Z.max 0 a.
Definition C (a : Z) := (0 <= a)%Z.

Lemma uneven_range x a : 0 <= uneven x a.
Proof. destruct x, a as [| [] | []]; numbers. Qed.

Lemma three (f : Z -> R) : (forall a, 0 <= f a) -> (forall a, (Z.abs a > 1)%Z -> f a = 0) ->
  summable f /\ sum f = f (-1)%Z + f 0%Z + f 1%Z.
Proof.
  intros N O. destruct (@sum_finite _ f [(-1)%Z; 0%Z; 1%Z]) as [S E]; auto.
  - repeat constructor; simpl; intuition discriminate.
  - intros a H. apply O. simpl in H. lia.
  - split; [exact S |]. rewrite E. simpl. lra.
Qed.

Lemma uneven_far x a : (Z.abs a > 1)%Z -> uneven x a = 0.
Proof. destruct a as [| [] | []]; simpl; intros; auto; lia. Qed.

Lemma law_uneven x : law (uneven x).
Proof.
  destruct (three (uneven_range x) (uneven_far x)) as [S E]. split; [exact S |]. rewrite E. destruct x; numbers.
Qed.

Lemma uneven_sum x (S : Z -> Prop) : sum (fun a => uneven x a * ind (S a)) =
  uneven x (-1) * ind (S (-1)%Z) + uneven x 0 * ind (S 0%Z) + uneven x 1 * ind (S 1%Z).
Proof.
  apply (three (f := fun a => uneven x a * ind (S a))).
  - intros a. generalize (uneven_range x a) (ind_range (S a)). nra.
  - intros a H. rewrite uneven_far by exact H. lra.
Qed.

Lemma image_uneven x b : image h11 (uneven x) b =
  match b with 0%Z => uneven x 0 + uneven x (-1) | 1%Z => uneven x 1 | _ => 0 end.
Proof.
  unfold image, bind. rewrite (uneven_sum x (fun a => h11 a = b)). unfold h11. simpl.
  destruct b as [| [] | []]; truths; destruct x; numbers.
Qed.

Lemma image_mass x : mass (image h11 (uneven x)) C = 1.
Proof.
  unfold mass. destruct (@three (fun a => image h11 (uneven x) a * ind (C a))) as [_ E].
  - intros a. generalize (proj1 (proj1 (law_image h11 (law_uneven x))) a) (ind_range (C a)). nra.
  - intros a H. rewrite image_uneven. destruct a as [| [] | []]; (lia || lra).
  - rewrite E, !image_uneven. unfold C. truths. destruct x; numbers.
Qed.

Theorem lemma_11_2 :
  pure other 0 (fun x => given (uneven x) C) /\
  ~ pure other (ln (5 / 4)) (fun x => given (image h11 (uneven x)) C) /\
  image h11 (given (uneven true) C) 0%Z <> given (image h11 (uneven true)) C 0%Z.
Proof.
  assert (M : forall x, mass (uneven x) C = if x then 1 / 2 else 1).
  { intros x. unfold mass. rewrite uneven_sum. unfold C. truths. destruct x; numbers. }
  assert (L : forall x, law (given (uneven x) C)) by (intros x; apply law_given; [apply law_uneven | rewrite M; destruct x; lra]).
  split; [| split].
  - apply pure_pointwise; auto. intros x x' _ a. rewrite exp_0. unfold given. rewrite !M.
    decide_ind (C a); [| lra]. unfold C in H. destruct x, x', a as [| [] | []]; (lia || numbers).
  - rewrite pure_pointwise by (intros x; apply law_given; [apply law_image, law_uneven | rewrite image_mass; lra]).
    intros H. specialize (H true false ltac:(discriminate) 0%Z). unfold given in H.
    rewrite !image_mass, !image_uneven, exp_ln in H by lra. revert H. unfold C. truths. numbers.
  - unfold given at 2. rewrite image_mass, image_uneven. unfold C at 2. rewrite ind_true by lia.
    unfold image, bind. destruct (@three (fun a => given (uneven true) C a * ind (h11 a = 0%Z))) as [_ E].
    + intros a. generalize (proj1 (proj1 (L true)) a) (ind_range (h11 a = 0%Z)). nra.
    + intros a H. unfold given. rewrite uneven_far by exact H. lra.
    + rewrite E. unfold given, h11. rewrite !M. unfold C. truths. numbers.
Qed.

(** ** Lemma 15: onto 0 <= v <= 1; M gives -1 or 0; h takes -1 to 1 *)
Definition certain (x : bool) (a : Z) : R := ind ((if x then 0 else -1)%Z = a).
Definition nearest (a : Z) : Z := Z.max 0 (Z.min 1 a).
Definition h15 (a : Z) : Z := if Z.eqb a (-1) then 1%Z else a.

Lemma image_point {A B} (h : A -> B) a b : image h (fun c => ind (a = c)) b = ind (h a = b).
Proof.
  unfold image, bind. transitivity (sum (fun c => ind (h c = b) * ind (c = a))).
  - apply sum_ext. intros c. rewrite Rmult_comm. f_equal. now apply ind_iff.
  - apply (sum_single (f := fun c => ind (h c = b)) (b := a)), ind_range.
Qed.

Theorem lemma_15 :
  pure other 0 (fun x => image nearest (certain x)) /\
  forall eps delta, delta < 1 -> ~ private other eps delta (fun x => image nearest (image h15 (certain x))).
Proof.
  split.
  - intros x x' _ S. rewrite exp_0. enough (image nearest (certain x) = image nearest (certain x')) as -> by lra.
    apply functional_extensionality. intros b. unfold certain. rewrite !image_point. destruct x, x'; reflexivity.
  - intros eps delta D H. specialize (H true false ltac:(discriminate) (fun b => b = 0%Z)).
    assert (L : forall x, law (image nearest (image h15 (certain x)))) by (intros; apply law_image, law_image, law_point).
    rewrite !prob_point in H by auto.
    assert (E : forall x, image h15 (certain x) = (fun c => ind (h15 (if x then 0 else -1) = c)%Z))
      by (intros; apply functional_extensionality; intros; apply image_point).
    rewrite !E, !image_point in H. rewrite (ind_true (P := nearest (h15 0) = 0%Z)) in H by reflexivity.
    rewrite (ind_false (P := nearest (h15 (-1)) = 0%Z)) in H by discriminate. lra.
Qed.

(** Laws, private mechanisms, and what is done to them without looking at the data again.

    A law is a summable weight whose sum is 1. A mechanism gives a law for every dataset; it is (ε, δ)-private for a
    relation of neighbours if P(x, S) <= e^ε P(x', S) + δ for all neighbours x, x' and all events S.
    Proved: for δ = 0 this is a bound on the ratio at every output ([pure_pointwise]); a function of the output, drawn or
    not, keeps (ε, δ) ([post_processing], [random_post_processing]), and so does moving to the nearest allowed point
    ([imaging], TV Lemma 14) and a function of the output and of figures that neighbours share ([beside_published]);
    two mechanisms, the second chosen by the output of the first, add their ε and δ ([basic_composition]); datasets k
    steps apart ([group_privacy]); a public coin among mechanisms ([mixture], [mixture_of_images], TV Thm 16);
    draws that only come near a law ([near_law]). *)

From Holdfast Require Export Sums.
Set Implicit Arguments.
Unset Strict Implicit.

Definition law {A} (p : A -> R) := summable p /\ sum p = 1.
Definition expect {A} (p f : A -> R) := sum (fun a => p a * f a).
Definition prob {A} (p : A -> R) (S : A -> Prop) := expect p (fun a => ind (S a)).
Definition test {A} (f : A -> R) := forall a, 0 <= f a <= 1.

Definition close {A} (eps delta : R) (p p' : A -> R) := forall S, prob p S <= exp eps * prob p' S + delta.
Definition private {X A} (near : X -> X -> Prop) (eps delta : R) (M : X -> A -> R) :=
  forall x x', near x x' -> close eps delta (M x) (M x').
Definition pure {X A} near eps (M : X -> A -> R) := private near eps 0 M.

Lemma summable_test {A} (p f : A -> R) : summable p -> test f -> summable (fun a => p a * f a).
Proof. intros P T. apply summable_le with p; auto. intros a. generalize (T a) (proj1 P a). nra. Qed.

Lemma expect_range {A} (p f : A -> R) : law p -> test f -> 0 <= expect p f <= 1.
Proof.
  intros [P <-] T. split; [apply sum_nonneg; now apply summable_test |].
  apply sum_le; auto. intros a. generalize (T a) (proj1 P a). nra.
Qed.

Lemma test_ind {A} (S : A -> Prop) : test (fun a => ind (S a)).
Proof. intros a. apply ind_range. Qed.
Global Hint Resolve test_ind summable_test : core.

Lemma prob_all {A} (p : A -> R) : law p -> prob p (fun _ => True) = 1.
Proof. intros [_ <-]. apply sum_ext. intros a. rewrite ind_true by exact I. lra. Qed.

Lemma prob_point {A} (p : A -> R) b : law p -> prob p (fun a => a = b) = p b.
Proof. intros [[N _] _]. apply (sum_single (f := p) (b := b)), N. Qed.

Lemma expect_le {A} (p f g : A -> R) : summable p -> test f -> test g -> (forall a, f a <= g a) -> expect p f <= expect p g.
Proof. intros P F G H. apply sum_le; auto. intros a. generalize (proj1 P a) (F a) (H a). nra. Qed.

Lemma expect_affine {A} (p u v : A -> R) c d : law p -> test u -> test v -> 0 <= c -> 0 <= d ->
  (forall a, u a <= c * v a + d) -> expect p u <= c * expect p v + d.
Proof.
  intros [P E] U V C D H. replace d with (d * sum p) by (rewrite E; lra). unfold expect.
  rewrite <- !sum_scale, <- sum_plus; auto using summable_scale. apply sum_le; [| apply summable_plus; auto using summable_scale].
  intros a. generalize (proj1 P a) (U a) (H a). nra.
Qed.

(** Events may be replaced by tests, functions between 0 and 1. *)
Lemma close_test {A} eps delta (p p' f : A -> R) : summable p -> summable p' -> close eps delta p p' -> test f ->
  expect p f <= exp eps * expect p' f + delta.
Proof.
  intros P P' C T. set (S := fun a => exp eps * p' a < p a). set (D := fun a => ind (S a) * (p a - exp eps * p' a)).
  assert (E := exp_pos eps).
  assert (D0 : forall a, 0 <= D a <= p a).
  { intros a. unfold D, S. generalize (proj1 P a) (proj1 P' a). intros. decide_ind (exp eps * p' a < p a); nra. }
  assert (SD : summable D) by (now apply summable_le with p).
  assert (Q : sum D + exp eps * prob p' S = prob p S).
  { unfold prob, expect. rewrite <- sum_scale, <- sum_plus; auto using summable_scale, Rlt_le.
    apply sum_ext. intros a. unfold D. lra. }
  specialize (C S). apply Rle_trans with (exp eps * expect p' f + sum D); [| lra].
  unfold expect. rewrite <- sum_scale, <- sum_plus; auto using summable_scale, Rlt_le.
  apply sum_le; [| apply summable_plus; auto using summable_scale, Rlt_le].
  intros a. generalize (proj1 P a) (proj1 P' a) (T a). intros. split; [nra |].
  unfold D, S. decide_ind (exp eps * p' a < p a); nra.
Qed.

Lemma close_pointwise {A} eps (p p' : A -> R) : law p -> law p' ->
  (close eps 0 p p' <-> forall a, p a <= exp eps * p' a).
Proof.
  intros P P'. split.
  - intros C a. specialize (C (fun b => b = a)). rewrite !prob_point in C by assumption. lra.
  - intros H S. rewrite Rplus_0_r. unfold prob, expect. rewrite <- sum_scale; [| left; apply exp_pos | apply summable_test, test_ind; apply P'].
    apply sum_le; [| apply summable_scale; [left; apply exp_pos | apply summable_test, test_ind; apply P']].
    intros a. generalize (H a) (ind_range (S a)) (proj1 (proj1 P) a). nra.
Qed.

Theorem pure_pointwise {X A} (near : X -> X -> Prop) eps (M : X -> A -> R) : (forall x, law (M x)) ->
  (pure near eps M <-> forall x x', near x x' -> forall a, M x a <= exp eps * M x' a).
Proof. intros L. split; intros H x x' N; apply close_pointwise; auto. Qed.

(** Draw a, then b by a law that may depend on a: the law of b, and of the pair. *)
Definition bind {A B} (p : A -> R) (k : A -> B -> R) (b : B) := sum (fun a => p a * k a b).
Definition joint {A B} (p : A -> R) (k : A -> B -> R) (ab : A * B) := p (fst ab) * k (fst ab) (snd ab).
Definition image {A B} (h : A -> B) (p : A -> R) := bind p (fun a b => ind (h a = b)).

Section Bind.
Context {A B : Type} (p : A -> R) (k : A -> B -> R) (P : law p) (K : forall a, law (k a)).

Lemma bind_doubly f : test f -> doubly (fun a b => p a * (k a b * f b)).
Proof.
  intros T. apply doubly_scale with 1; try lra; [apply P | |].
  - intros a. apply summable_test; auto. apply K.
  - intros a. apply (expect_range (K a) T).
Qed.

Lemma expect_bind f : test f -> expect (bind p k) f = expect p (fun a => expect (k a) f).
Proof.
  intros T. transitivity (sum (fun a => sum (fun b => p a * (k a b * f b)))).
  - rewrite <- (swap (bind_doubly T)). apply sum_ext. intros b. unfold bind.
    assert (S : summable (fun a => p a * k a b)).
    { apply summable_le with p; [| apply P]. intros a. generalize (proj1 (proj1 P) a) (sum_term b (proj1 (K a))) (proj1 (proj1 (K a)) b).
      rewrite (proj2 (K a)). nra. }
    rewrite Rmult_comm, <- sum_scale; [apply sum_ext; intros; lra | apply T | exact S].
  - apply sum_ext. intros a. apply sum_scale; [apply P | apply summable_test; auto; apply K].
Qed.

Lemma law_bind : law (bind p k).
Proof.
  assert (T : test (fun _ : B => 1)) by (intros ?; lra).
  assert (E : (fun b => sum (fun a => p a * (k a b * 1))) = bind p k).
  { apply functional_extensionality. intros b. apply sum_ext. intros; lra. }
  split.
  - rewrite <- E. apply (doubly_flip (bind_doubly T)).
  - rewrite <- E, (swap (bind_doubly T)). transitivity (sum p); [| apply P]. apply sum_ext. intros a.
    rewrite sum_scale; [| apply P | apply summable_test; auto; apply K].
    rewrite (sum_ext (g := k a)) by (intros; lra). rewrite (proj2 (K a)). lra.
Qed.

Lemma expect_joint f : test f -> expect (joint p k) f = expect p (fun a => expect (k a) (fun b => f (a, b))).
Proof.
  intros T. assert (D : doubly (fun a b => p a * (k a b * f (a, b)))).
  { apply doubly_scale with 1; try lra; [apply P | |]; intros a.
    - apply summable_test; [apply K | intros b; apply T].
    - apply (expect_range (K a) (f := fun b => f (a, b))). intros b; apply T. }
  transitivity (sum (fun a => sum (fun b => p a * (k a b * f (a, b))))).
  - rewrite <- (proj2 (sum_pairs D)). apply sum_ext. intros [a b]. unfold joint. simpl. lra.
  - apply sum_ext. intros a. apply sum_scale; [apply P | apply summable_test; [apply K | intros b; apply T]].
Qed.

Lemma law_joint : law (joint p k).
Proof.
  assert (D : doubly (fun a b => p a * k a b)).
  { apply doubly_scale with 1; try lra; [apply P | apply K |]. intros a. rewrite (proj2 (K a)). lra. }
  destruct (sum_pairs D) as [S Q]. split; [exact S |]. unfold joint. rewrite Q.
  transitivity (sum p); [| apply P]. apply sum_ext. intros a. rewrite sum_scale by (apply P || apply K). rewrite (proj2 (K a)). lra.
Qed.
End Bind.

Lemma law_point {A} (b : A) : law (fun a => ind (b = a)).
Proof.
  assert (E : (fun a => ind (b = a)) = (fun a => 1 * ind (a = b))).
  { apply functional_extensionality. intros a. rewrite Rmult_1_l. now apply ind_iff. }
  rewrite E. split; apply (sum_single (f := fun _ => 1) (b := b)); lra.
Qed.

Lemma law_image {A B} (h : A -> B) (p : A -> R) : law p -> law (image h p).
Proof. intros P. apply law_bind; auto. intros; apply law_point. Qed.

(** The image of a law gives an event the probability of what is mapped into it. *)
Lemma expect_image {A B} (h : A -> B) (p : A -> R) f : law p -> test f ->
  expect (image h p) f = expect p (fun a => f (h a)).
Proof.
  intros P T. unfold image. rewrite expect_bind; auto using law_point. apply sum_ext. intros a. f_equal.
  unfold expect. rewrite <- (proj2 (sum_single (f := f) (b := h a) (proj1 (T _)))).
  apply sum_ext. intros b. rewrite Rmult_comm. f_equal. now apply ind_iff.
Qed.

Section Mechanisms.
Context {X : Type} (near : X -> X -> Prop).

(** ** Post-processing *)
Theorem random_post_processing {A B} (M : X -> A -> R) (k : A -> B -> R) eps delta :
  (forall x, law (M x)) -> (forall a, law (k a)) -> private near eps delta M ->
  private near eps delta (fun x => bind (M x) k).
Proof.
  intros L K H x x' N S. unfold prob. rewrite !expect_bind; auto.
  apply close_test; try apply L; [now apply H |]. intros a. apply expect_range; auto.
Qed.

Theorem post_processing {A B} (M : X -> A -> R) (h : A -> B) eps delta :
  (forall x, law (M x)) -> private near eps delta M -> private near eps delta (fun x => image h (M x)).
Proof. intros L H. apply random_post_processing; auto using law_point. Qed.

(** TV Lemma 14: [nearest] takes every output to the nearest allowed one, by a rule fixed beforehand. *)
Theorem imaging {A} (M : X -> A -> R) (nearest : A -> A) eps delta :
  (forall x, law (M x)) -> private near eps delta M -> private near eps delta (fun x => image nearest (M x)).
Proof. apply post_processing. Qed.

(** A function of the output and of figures that are published exactly, for neighbours that share these figures. *)
Theorem beside_published {A B F} (M : X -> A -> R) (exact : X -> F) (h : F -> A -> B) eps delta :
  (forall x, law (M x)) -> (forall x x', near x x' -> exact x = exact x') ->
  private near eps delta M -> private near eps delta (fun x => image (h (exact x)) (M x)).
Proof.
  intros L E H x x' N. rewrite (E x x' N). apply (@post_processing _ _ M (h (exact x')) eps delta L H x x' N).
Qed.

(** ** Composition; the second mechanism may be chosen by the first one's output *)
Theorem basic_composition {A B} (M : X -> A -> R) (M' : A -> X -> B -> R) eps eps' delta delta' :
  (forall x, law (M x)) -> (forall a x, law (M' a x)) -> 0 <= delta' ->
  private near eps delta M -> (forall a, private near eps' delta' (M' a)) ->
  private near (eps + eps') (delta + delta') (fun x => joint (M x) (fun a => M' a x)).
Proof.
  intros L L' D H H' x x' N S. unfold prob. rewrite !expect_joint; auto.
  set (f a b := ind (S (a, b))). change (fun b => ind (S (?a, b))) with (f a).
  assert (F : forall a, test (f a)) by (intros a b; apply ind_range).
  set (g a := Rmin 1 (exp eps' * expect (M' a x') (f a))).
  assert (G : test g).
  { intros a. unfold g. generalize (expect_range (L' a x') (F a)) (exp_pos eps'). intros. split; [| apply Rmin_l].
    apply Rmin_glb; nra. }
  assert (T : forall y, test (fun a => expect (M' a y) (f a))) by (intros y a; now apply expect_range).
  assert (U : expect (M x) (fun a => expect (M' a x) (f a)) <= 1 * expect (M x) g + delta').
  { apply expect_affine; auto; try lra. intros a.
    generalize (close_test (proj1 (L' a x)) (proj1 (L' a x')) (H' a x x' N) (F a)) (T x a).
    unfold g, Rmin. destruct (Rle_dec _ _); lra. }
  assert (V : expect (M x') g <= exp eps' * expect (M x') (fun a => expect (M' a x') (f a)) + 0).
  { apply expect_affine; auto; try lra; [left; apply exp_pos |]. intros a. unfold g. rewrite Rplus_0_r. apply Rmin_r. }
  assert (C := close_test (proj1 (L x)) (proj1 (L x')) (H x x' N) G).
  rewrite exp_plus. generalize (exp_pos eps). nra.
Qed.

(** ** Several records: datasets that k steps from neighbour to neighbour connect *)
Inductive steps : nat -> X -> X -> Prop :=
| here x : steps 0 x x
| step k x y z : near x y -> steps k y z -> steps (S k) x z.

Fixpoint geometric (r : R) (k : nat) : R := match k with O => 0 | S k => 1 + r * geometric r k end.

Theorem group_privacy {A} (M : X -> A -> R) eps delta k : private near eps delta M ->
  private (steps k) (INR k * eps) (delta * geometric (exp eps) k) M.
Proof.
  intros H x z P S. induction P as [x | k x y z N P IH]; [simpl; rewrite Rmult_0_l, exp_0; lra |].
  specialize (H x y N S). rewrite S_INR, Rmult_plus_distr_r, Rmult_1_l, exp_plus. simpl.
  generalize (exp_pos eps). nra.
Qed.

Theorem group_privacy_pure {A} (M : X -> A -> R) eps k : pure near eps M -> pure (steps k) (INR k * eps) M.
Proof. intros H. unfold pure. replace 0 with (0 * geometric (exp eps) k) by lra. now apply group_privacy. Qed.

(** ** A public coin chooses a mechanism (TV Thm 16) *)
Theorem mixture {I A} (coin : I -> R) (M : I -> X -> A -> R) eps delta :
  law coin -> (forall i x, law (M i x)) -> (forall i, private near eps delta (M i)) -> 0 <= delta ->
  private near eps delta (fun x => bind coin (fun i => M i x)).
Proof.
  intros C L H D x x' N S. unfold prob. rewrite !expect_bind; auto.
  apply expect_affine; auto; try (intros i; apply expect_range; auto); [left; apply exp_pos |].
  intros i. now apply H.
Qed.

(** Part 1: the image of a mixture is the mixture of the images. *)
Lemma image_mixture {I A B} (coin : I -> R) (k : I -> A -> R) (h : A -> B) S : law coin -> (forall i, law (k i)) ->
  prob (image h (bind coin k)) S = prob (bind coin (fun i => image h (k i))) S.
Proof.
  intros C K. unfold prob. rewrite expect_image, !expect_bind; auto using law_image, law_bind;
    try (intros a; apply ind_range). apply sum_ext. intros i. f_equal. now rewrite expect_image.
Qed.

Theorem mixture_of_images {I A} (coin : I -> R) (M : I -> X -> A -> R) (nearest : A -> A) eps delta :
  law coin -> (forall i x, law (M i x)) -> 0 <= delta ->
  (forall i, private near eps delta (fun x => image nearest (M i x))) ->
  private near eps delta (fun x => image nearest (bind coin (fun i => M i x))).
Proof.
  intros C L D H x x' N S. rewrite !image_mixture; auto.
  now apply (@mixture _ _ coin (fun i x => image nearest (M i x)) eps delta); auto using law_image.
Qed.

(** ** Draws that only come near a law: T gives every event the probability that M gives it, up to tau *)
Theorem near_law {A} (M T : X -> A -> R) eps delta tau :
  (forall x S, Rabs (prob (T x) S - prob (M x) S) <= tau) -> private near eps delta M ->
  private near eps (delta + (1 + exp eps) * tau) T.
Proof.
  intros H P x x' N S. specialize (P x x' N S). generalize (H x S) (H x' S) (exp_pos eps). intros U V E.
  unfold Rabs in U, V. destruct (Rcase_abs _), (Rcase_abs _); nra.
Qed.
End Mechanisms.

(** Sums of non-negative weights over any type.

    The sum of a weight is the least upper bound of its sums over finite lists without repetition. It does not depend on
    an order, so sums may be scaled, added, exchanged (Tonelli) and carried along one-to-one maps. A weight is summable
    if it is not negative and its finite sums are bounded. Nothing here speaks of privacy. *)

From Coq Require Export Reals List Lra Lia ZArith Classical FinFun FunctionalExtensionality.
Export ListNotations.
#[global] Open Scope R_scope.
Set Implicit Arguments.
Unset Strict Implicit.

(** Every statement is true or false; [ind] is 1 where it is true and 0 where it is not. *)
Definition dec (P : Prop) : {P} + {~ P}.
Proof.
  destruct (ClassicalDedekindReals.sig_not_dec P) as [H | H]; [left; apply NNPP | right]; exact H.
Defined.

Definition ind (P : Prop) : R := if dec P then 1 else 0.

Lemma ind_true (P : Prop) : P -> ind P = 1.
Proof. unfold ind; destruct (dec P); tauto. Qed.

Lemma ind_false (P : Prop) : ~ P -> ind P = 0.
Proof. unfold ind; destruct (dec P); tauto. Qed.

Lemma ind_range P : 0 <= ind P <= 1.
Proof. unfold ind; destruct (dec P); lra. Qed.

Lemma ind_iff (P Q : Prop) : (P <-> Q) -> ind P = ind Q.
Proof. unfold ind; destruct (dec P), (dec Q); tauto. Qed.

Ltac decide_ind P :=
  let H := fresh "H" in
  destruct (dec P) as [H | H]; [rewrite ?(ind_true H) in * | rewrite ?(ind_false H) in *].

Section Lists.
Context {A : Type}.
Implicit Types (f g : A -> R) (l : list A).

Fixpoint lsum f l : R := match l with [] => 0 | a :: l => f a + lsum f l end.

Lemma lsum_le f g l : (forall a, In a l -> f a <= g a) -> lsum f l <= lsum g l.
Proof.
  induction l as [| a l IH]; simpl; intros H; [lra |].
  specialize (H a (or_introl eq_refl)) as Ha. assert (lsum f l <= lsum g l) by (apply IH; auto). lra.
Qed.

Lemma lsum_app f l l' : lsum f (l ++ l') = lsum f l + lsum f l'.
Proof. induction l; simpl; lra. Qed.

Lemma lsum_plus f g l : lsum (fun a => f a + g a) l = lsum f l + lsum g l.
Proof. induction l; simpl; lra. Qed.

Lemma lsum_scale c f l : lsum (fun a => c * f a) l = c * lsum f l.
Proof. induction l; simpl; lra. Qed.

Lemma lsum_zero l : lsum (fun _ => 0) l = 0.
Proof. induction l; simpl; lra. Qed.

Lemma lsum_nonneg f l : (forall a, 0 <= f a) -> 0 <= lsum f l.
Proof. intros H. rewrite <- (lsum_zero l). apply lsum_le; auto. Qed.

(** More members, a larger sum. *)
Lemma lsum_incl f l : (forall a, 0 <= f a) -> NoDup l -> forall l', incl l l' -> lsum f l <= lsum f l'.
Proof.
  intros Hf. induction 1 as [| a l Ha Hl IH]; intros l' I; simpl; [now apply lsum_nonneg |].
  destruct (in_split a l' (I a (or_introl eq_refl))) as (u & v & ->).
  assert (lsum f l <= lsum f (u ++ v)).
  { apply IH. intros b Hb. specialize (I b (or_intror Hb)). rewrite in_app_iff in *. simpl in I.
    destruct I as [| [-> |]]; auto. contradiction. }
  rewrite lsum_app in *. simpl. lra.
Qed.

(** Two lists without repetition have a common one. *)
Lemma common l l' : exists u, NoDup u /\ incl l u /\ incl l' u.
Proof.
  cut (forall m : list A, exists u, NoDup u /\ incl m u).
  { intros H. destruct (H (l ++ l')) as (u & D & I). exists u. split; [exact D |].
    split; intros a Ha; apply I, in_app_iff; auto. }
  induction m as [| a m (u & D & I)]; [exists []; split; [constructor | intros ? []] |].
  destruct (classic (In a u)).
  - exists u. split; [exact D |]. intros b [<- | Hb]; auto.
  - exists (a :: u). split; [now constructor |]. intros b [<- | Hb]; simpl; auto.
Qed.
End Lists.

Lemma lsum_map {A B} (f : B -> R) (g : A -> B) l : lsum f (map g l) = lsum (fun a => f (g a)) l.
Proof. induction l; simpl; lra. Qed.

Lemma lsum_prod {A B} (f : A -> B -> R) la lb :
  lsum (fun p => f (fst p) (snd p)) (list_prod la lb) = lsum (fun a => lsum (f a) lb) la.
Proof.
  induction la as [| a la IH]; simpl; [lra |].
  rewrite lsum_app, IH, lsum_map. reflexivity.
Qed.

Lemma nodup_app {A} (l l' : list A) : NoDup l -> NoDup l' -> (forall a, In a l -> ~ In a l') -> NoDup (l ++ l').
Proof.
  induction 1 as [| a l Ha Hl IH]; simpl; intros Hl' D; auto. constructor; auto.
  rewrite in_app_iff. intros [|]; [contradiction |]. now apply (D a (or_introl eq_refl)).
Qed.

Lemma nodup_prod {A B} (la : list A) (lb : list B) : NoDup la -> NoDup lb -> NoDup (list_prod la lb).
Proof.
  intros Ha Hb. induction Ha as [| a la H Ha IH]; simpl; [constructor |]. apply nodup_app; auto.
  - apply Injective_map_NoDup; [| exact Hb]. intros x y [= E]. exact E.
  - intros [a' b] Hin Hin'. apply in_map_iff in Hin as (b' & [= <- <-] & _). apply in_prod_iff in Hin'. tauto.
Qed.

(** The sum of a weight, and which weights have one. *)
Definition sums {A} (f : A -> R) (r : R) := exists l, NoDup l /\ r = lsum f l.
Definition summable {A} (f : A -> R) := (forall a, 0 <= f a) /\ bound (sums f).

Lemma sums_some {A} (f : A -> R) : exists r, sums f r.
Proof. exists 0, []. split; [constructor | reflexivity]. Qed.

Definition sum {A} (f : A -> R) : R :=
  match dec (bound (sums f)) with
  | left H => proj1_sig (completeness (sums f) H (sums_some f))
  | right _ => 0
  end.

Section Sum.
Context {A : Type}.
Implicit Types (f g : A -> R) (l : list A).

Lemma sum_lub f : bound (sums f) -> is_lub (sums f) (sum f).
Proof. unfold sum. destruct (dec _); [intros _; apply proj2_sig | tauto]. Qed.

Lemma sum_upper f l : summable f -> NoDup l -> lsum f l <= sum f.
Proof. intros [_ H] D. apply (sum_lub H). exists l; auto. Qed.

Lemma bounded_by f c : (forall l, NoDup l -> lsum f l <= c) -> bound (sums f).
Proof. intros H. exists c. intros r (l & D & ->). auto. Qed.

Lemma sum_least f c : (forall l, NoDup l -> lsum f l <= c) -> sum f <= c.
Proof. intros H. apply (sum_lub (bounded_by H)). intros r (l & D & ->). auto. Qed.

Lemma summable_by f c : (forall a, 0 <= f a) -> (forall l, NoDup l -> lsum f l <= c) -> summable f.
Proof. intros N H. split; [exact N | exact (bounded_by H)]. Qed.

Lemma sum_nonneg f : summable f -> 0 <= sum f.
Proof. intros H. apply (sum_upper H (NoDup_nil A)). Qed.

Lemma sum_term f a : summable f -> f a <= sum f.
Proof.
  intros H. assert (D : NoDup [a]) by (constructor; [intros [] | constructor]).
  generalize (sum_upper H D). simpl. lra.
Qed.

Lemma summable_le f g : (forall a, 0 <= f a <= g a) -> summable g -> summable f.
Proof.
  intros H G. apply (@summable_by f (sum g)); [apply H |]. intros l D.
  apply Rle_trans with (lsum g l); [apply lsum_le; intros; apply H | now apply sum_upper].
Qed.

Lemma sum_le f g : (forall a, 0 <= f a <= g a) -> summable g -> sum f <= sum g.
Proof.
  intros H G. apply sum_least. intros l D.
  apply Rle_trans with (lsum g l); [apply lsum_le; intros; apply H | now apply sum_upper].
Qed.

Lemma sum_ext f g : (forall a, f a = g a) -> sum f = sum g.
Proof. intros H. f_equal. now apply functional_extensionality. Qed.

Lemma sum_zero : sum (fun _ : A => 0) = 0.
Proof.
  assert (H : forall l : list A, NoDup l -> lsum (fun _ => 0) l <= 0) by (intros; rewrite lsum_zero; lra).
  apply Rle_antisym; [now apply sum_least |]. apply sum_nonneg, (@summable_by _ 0); auto using Rle_refl.
Qed.

Lemma summable_zero : summable (fun _ : A => 0).
Proof. apply (@summable_by _ 0); intros; rewrite ?lsum_zero; apply Rle_refl. Qed.

Lemma summable_scale c f : 0 <= c -> summable f -> summable (fun a => c * f a).
Proof.
  intros C H. apply (@summable_by _ (c * sum f)); [intros a; apply Rmult_le_pos, H; exact C |].
  intros l D. rewrite lsum_scale. apply Rmult_le_compat_l, sum_upper; assumption.
Qed.

Lemma sum_scale c f : 0 <= c -> summable f -> sum (fun a => c * f a) = c * sum f.
Proof.
  intros C H. apply Rle_antisym.
  - apply sum_least. intros l D. rewrite lsum_scale. apply Rmult_le_compat_l, sum_upper; assumption.
  - destruct C as [C | <-]; [| generalize (sum_nonneg (summable_scale (Rle_refl 0) H)); lra].
    apply Rmult_le_reg_l with (/ c); [now apply Rinv_0_lt_compat |].
    rewrite <- Rmult_assoc, Rinv_l, Rmult_1_l by lra. apply sum_least. intros l D.
    apply Rmult_le_reg_l with c; [exact C |]. rewrite <- Rmult_assoc, Rinv_r, Rmult_1_l by lra.
    rewrite <- lsum_scale. apply sum_upper; [apply summable_scale; auto; lra | exact D].
Qed.

Lemma summable_plus f g : summable f -> summable g -> summable (fun a => f a + g a).
Proof.
  intros F G. apply (@summable_by _ (sum f + sum g)).
  - intros a. apply Rplus_le_le_0_compat; [apply F | apply G].
  - intros l D. rewrite lsum_plus. apply Rplus_le_compat; now apply sum_upper.
Qed.

(** The sums of two weights are approached along common lists. *)
Lemma sum_two f g c : summable f -> summable g -> (forall l, NoDup l -> lsum f l + lsum g l <= c) -> sum f + sum g <= c.
Proof.
  intros F G H. assert (X : forall l', NoDup l' -> sum f <= c - lsum g l').
  { intros l' D'. apply sum_least. intros l D. destruct (common l l') as (u & U & I & I').
    generalize (H u U) (lsum_incl (proj1 F) D I) (lsum_incl (proj1 G) D' I'). lra. }
  cut (sum g <= c - sum f); [lra |]. apply sum_least. intros l' D'. specialize (X l' D'). lra.
Qed.

Lemma sum_plus f g : summable f -> summable g -> sum (fun a => f a + g a) = sum f + sum g.
Proof.
  intros F G. apply Rle_antisym.
  - apply sum_least. intros l D. rewrite lsum_plus. apply Rplus_le_compat; now apply sum_upper.
  - apply sum_two; auto. intros l D. rewrite <- lsum_plus. apply sum_upper; auto using summable_plus.
Qed.

Lemma sum_single f b : 0 <= f b -> summable (fun a => f a * ind (a = b)) /\ sum (fun a => f a * ind (a = b)) = f b.
Proof.
  intros N. assert (P : forall a, 0 <= f a * ind (a = b)).
  { intros a. decide_ind (a = b); [subst; lra | lra]. }
  assert (L : forall l, NoDup l -> lsum (fun a => f a * ind (a = b)) l <= f b).
  { intros l. induction 1 as [| a l Ha Hl IH]; simpl; [lra |]. decide_ind (a = b); [| lra]. subst.
    replace (lsum _ l) with 0; [lra |]. rewrite <- (lsum_zero l) at 1. clear - Ha.
    induction l as [| c l IH]; simpl in *; [reflexivity |].
    rewrite <- IH by tauto. rewrite (ind_false (P := c = b)); [lra | intros ->; tauto]. }
  assert (S : summable (fun a => f a * ind (a = b))) by (now apply (@summable_by _ (f b))).
  split; [exact S |]. apply Rle_antisym; [now apply sum_least |].
  apply Rle_trans with (f b * ind (b = b)); [rewrite ind_true by auto; lra |].
  exact (sum_term b S).
Qed.
End Sum.

(** Sums may be exchanged. *)
Definition doubly {A B} (f : A -> B -> R) := (forall a, summable (f a)) /\ summable (fun a => sum (f a)).

Lemma sum_lsum {A B} (f : A -> B -> R) lb : (forall b, summable (fun a => f a b)) ->
  summable (fun a => lsum (f a) lb) /\ sum (fun a => lsum (f a) lb) = lsum (fun b => sum (fun a => f a b)) lb.
Proof.
  intros H. induction lb as [| b lb [IS IH]]; simpl; [split; [apply summable_zero | apply sum_zero] |].
  split; [now apply summable_plus |]. rewrite sum_plus, IH; auto.
Qed.

Lemma doubly_flip {A B} (f : A -> B -> R) : doubly f -> doubly (fun b a => f a b).
Proof.
  intros [Hf Hs]. assert (C : forall b, summable (fun a => f a b)).
  { intros b. apply summable_le with (fun a => sum (f a)); auto. intros a. split; [apply Hf | apply (sum_term b (Hf a))]. }
  split; auto. apply (@summable_by _ _ (sum (fun a => sum (f a)))); [intros; now apply sum_nonneg |].
  intros lb D. destruct (sum_lsum lb C) as [_ <-]. apply sum_le; auto.
  intros a. split; [apply lsum_nonneg, Hf | apply sum_upper; auto].
Qed.

Lemma swap_le {A B} (f : A -> B -> R) : doubly f -> sum (fun b => sum (fun a => f a b)) <= sum (fun a => sum (f a)).
Proof.
  intros H. destruct H as [Hf Hs] eqn:E. destruct (doubly_flip H) as [C _]. apply sum_least.
  intros lb D. destruct (sum_lsum lb C) as [_ <-]. apply sum_le; auto.
  intros a. split; [apply lsum_nonneg, Hf | apply sum_upper; auto].
Qed.

(** Sums over pairs. *)
Lemma sum_pairs {A B} (f : A -> B -> R) : doubly f ->
  summable (fun p => f (fst p) (snd p)) /\ sum (fun p => f (fst p) (snd p)) = sum (fun a => sum (f a)).
Proof.
  intros [Hf Hs]. set (F := fun p => f (fst p) (snd p)).
  assert (N : forall p, 0 <= F p) by (intros; apply Hf).
  assert (L : forall l, NoDup l -> lsum F l <= sum (fun a => sum (f a))).
  { intros l D. destruct (common (map fst l) []) as (la & Da & Ia & _). destruct (common (map snd l) []) as (lb & Db & Ib & _).
    apply Rle_trans with (lsum F (list_prod la lb)).
    - apply lsum_incl; auto. intros [a b] H. apply in_prod_iff. split; [apply Ia | apply Ib]; apply in_map_iff; now exists (a, b).
    - unfold F. rewrite lsum_prod. apply Rle_trans with (lsum (fun a => sum (f a)) la); [| now apply sum_upper].
      apply lsum_le. intros a _. now apply sum_upper. }
  assert (S : summable F) by exact (summable_by N L). split; [exact S |].
  apply Rle_antisym; [now apply sum_least |]. apply sum_least. intros la Da.
  apply Rle_trans with (sum (fun b => lsum (fun a => f a b) la));
    [right; symmetry; exact (proj2 (sum_lsum (f := fun b a => f a b) la Hf)) |].
  apply sum_least. intros lb Db.
  replace (lsum (fun b => lsum (fun a => f a b) la) lb) with (lsum F (list_prod la lb)); [apply sum_upper; auto using nodup_prod |].
  unfold F. rewrite lsum_prod. clear. induction la as [| a la IH]; simpl; [now rewrite lsum_zero |].
  rewrite lsum_plus, <- IH. reflexivity.
Qed.

Lemma swap {A B} (f : A -> B -> R) : doubly f -> sum (fun b => sum (fun a => f a b)) = sum (fun a => sum (f a)).
Proof.
  intros H. apply Rle_antisym; [now apply swap_le |]. exact (swap_le (doubly_flip H)).
Qed.

Lemma doubly_scale {A B} (p : A -> R) (k : A -> B -> R) c : summable p -> (forall a, summable (k a)) ->
  (forall a, sum (k a) <= c) -> 0 <= c -> doubly (fun a b => p a * k a b).
Proof.
  intros P K C C0. split; [intros a; apply summable_scale; [apply P | auto] |].
  apply summable_le with (fun a => c * p a); [| now apply summable_scale].
  intros a. rewrite sum_scale by (auto; apply P). generalize (proj1 P a) (C a) (sum_nonneg (K a)). nra.
Qed.

(** The sum of products is the product of sums. *)
Lemma sum_product {A B} (f : A -> R) (g : B -> R) : summable f -> summable g ->
  summable (fun p => f (fst p) * g (snd p)) /\ sum (fun p => f (fst p) * g (snd p)) = sum f * sum g.
Proof.
  intros F G. assert (D : doubly (fun a b => f a * g b)).
  { apply doubly_scale with (sum g); auto using Rle_refl, sum_nonneg. }
  destruct (sum_pairs D) as [S ->]. split; [exact S |].
  rewrite (sum_ext (g := fun a => sum g * f a)); [rewrite sum_scale; auto using sum_nonneg; lra |].
  intros a. rewrite sum_scale by (auto; apply F). lra.
Qed.

(** A sum is carried along a map by the sums over what is mapped to one point. *)
Lemma sum_fibres {A B} (f : A -> R) (h : A -> B) : summable f ->
  (forall b, summable (fun a => f a * ind (h a = b))) /\
  summable (fun b => sum (fun a => f a * ind (h a = b))) /\
  sum (fun b => sum (fun a => f a * ind (h a = b))) = sum f.
Proof.
  intros F. assert (E : forall a, summable (fun b => f a * ind (h a = b)) /\ sum (fun b => f a * ind (h a = b)) = f a).
  { intros a. destruct (sum_single (f := fun _ : B => f a) (b := h a)) as [S Q]; [apply F |].
    replace (fun b => f a * ind (h a = b)) with (fun b => f a * ind (b = h a)); [auto |].
    apply functional_extensionality. intros b. f_equal. now apply ind_iff. }
  assert (D : doubly (fun a b => f a * ind (h a = b))).
  { split; [apply E |]. replace (fun a => _) with f; [exact F |]. apply functional_extensionality. intros; symmetry; apply E. }
  split; [apply (doubly_flip D) |]. split; [apply (doubly_flip D) |]. rewrite (swap D). apply sum_ext, E.
Qed.

(** A one-to-one map onto everything does not change a sum. *)
Lemma sum_bijection {A B} (h : A -> B) (k : B -> A) (f : B -> R) :
  (forall a, k (h a) = a) -> (forall b, h (k b) = b) -> summable f ->
  summable (fun a => f (h a)) /\ sum (fun a => f (h a)) = sum f.
Proof.
  intros K H F. destruct (sum_fibres k F) as (_ & S & Q). rewrite <- Q.
  replace (fun a => f (h a)) with (fun b => sum (fun a => f a * ind (k a = b))); auto.
  apply functional_extensionality. intros a. rewrite <- (proj2 (sum_single (f := f) (b := h a) (proj1 F _))).
  apply sum_ext. intros b. f_equal. apply ind_iff. split; [intros <-; now rewrite H | intros ->; apply K].
Qed.

(** Two products of sums are compared pair by pair, each pair with its mirror image. *)
Lemma sum_mirror {A} (f f' g g' : A -> R) : summable f -> summable f' -> summable g -> summable g' ->
  (forall a b, f a * f' b + f b * f' a <= g a * g' b + g b * g' a) -> sum f * sum f' <= sum g * sum g'.
Proof.
  intros F F' G G' H. assert (M : forall (u v : A -> R), summable u -> summable v ->
    let m p := u (fst p) * v (snd p) + u (snd p) * v (fst p) in summable m /\ sum m = 2 * (sum u * sum v)).
  { intros u v U V m. destruct (sum_product U V) as [S1 Q1]. destruct (sum_product V U) as [S2 Q2].
    replace m with (fun p => u (fst p) * v (snd p) + v (fst p) * u (snd p))
      by (apply functional_extensionality; intros; unfold m; lra).
    split; [now apply summable_plus |]. rewrite sum_plus, Q1, Q2 by auto. lra. }
  destruct (M _ _ F F') as [S Q]. destruct (M _ _ G G') as [T P].
  assert (sum (fun p => f (fst p) * f' (snd p) + f (snd p) * f' (fst p))
    <= sum (fun p => g (fst p) * g' (snd p) + g (snd p) * g' (fst p))); [| lra].
  apply sum_le; auto. intros p. split; [apply S | apply H].
Qed.

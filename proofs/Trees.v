(** The price of "not negative" on the leaves of a hierarchy (THEORY H1).

    A hierarchy is made of leaves and of pairs of smaller hierarchies; a node of many children is pairs with unmeasured
    nodes between them, a forest is one with an unmeasured root. Every node has a rate r = 1/λ; rate 0 is unmeasured.
    Leaves are measured. The noise u of the leaves has weight Π W(r_v, u_v), u_v the sum below node v: independent noise
    given consistency. Datasets are lists of records, each of which adds 1 to one leaf.
    [normaliser x] is c_x, the weight of "x + u is not negative".
    Proved for every log-concave law of noise: log c_x rises less for a record the more records there are
    ([submodular], [increments_fall], [several_records]), so most from the empty table. TreePrice.v draws the conclusion for privacy. *)

From Holdfast Require Export LogConcave.
Set Implicit Arguments.
Unset Strict Implicit.

Inductive tree := leaf (r : R) | node (r : R) (l l' : tree).

Fixpoint table (T : tree) : Type := match T with leaf _ => Z | node _ l l' => (table l * table l')%type end.
#[global] Instance group_table T : Group (table T).
Proof. induction T; simpl; typeclasses eauto. Defined.

Fixpoint total T : table T -> Z :=
  match T with leaf _ => fun u => u | node _ l l' => fun u => (total (fst u) + total (snd u))%Z end.

(** Where a record can be, and what it adds. *)
Fixpoint place (T : tree) : Type := match T with leaf _ => unit | node _ l l' => (place l + place l')%type end.
Fixpoint raise T : place T -> table T -> table T :=
  match T with
  | leaf _ => fun _ x => (x + 1)%Z
  | node _ l l' => fun j x => match j with inl j => (raise j (fst x), snd x) | inr j => (fst x, raise j (snd x)) end
  end.
(** ε_j: the rates of the nodes above a place. *)
Fixpoint path T : place T -> R :=
  match T with
  | leaf r => fun _ => r
  | node r l l' => fun j => r + match j with inl j => path j | inr j => path j end
  end.

Fixpoint measured (T : tree) : Prop :=
  match T with leaf r => 0 < r | node r l l' => 0 <= r /\ measured l /\ measured l' end.

(** No leaf of x + u is negative. *)
Fixpoint nonneg T : table T -> table T -> Prop :=
  match T with
  | leaf _ => fun x u => (- x <= u)%Z
  | node _ l l' => fun x u => nonneg (fst x) (fst u) /\ nonneg (snd x) (snd u)
  end.

Lemma raise_comm T (j k : place T) x : raise j (raise k x) = raise k (raise j x).
Proof.
  induction T as [r | r l IHl l' IHl']; simpl; [reflexivity |].
  destruct j as [j | j], k as [k | k]; simpl; f_equal; auto.
Qed.

Section Weights.
(** A family of log-concave laws: Laplace W(r, u) = e^(-r|u|), Gaussian e^(-r u²). *)
Context (W : R -> Z -> R).
Hypothesis W_lc : forall r, 0 <= r -> lc (W r).
Hypothesis W_summable : forall r, 0 < r -> summable (W r).
Hypothesis W_bounded : forall r, 0 <= r -> bounded (W r).
Hypothesis W_zero : forall r, 0 <= r -> 0 < W r 0.

Fixpoint weight T : table T -> R :=
  match T with
  | leaf r => fun u => W r u
  | node r l l' => fun u => W r (total u) * (weight (fst u) * weight (snd u))
  end.

Definition normaliser T (x : table T) := sum (fun u : table T => weight u * ind (nonneg x u)).

(** The weight of "the leaves below sum to t", by one pass up. *)
Fixpoint message T : table T -> Z -> R :=
  match T with
  | leaf r => fun x u => W r u * ind (- x <= u)%Z
  | node r l l' => fun x t => W r t * conv (message (fst x)) (message (snd x)) t
  end.

Lemma lc_from x : lc (fun u => ind (x <= u)%Z) /\ bounded (fun u => ind (x <= u)%Z).
Proof.
  repeat split; try (intros; apply ind_range); [| exists 1; intros; apply ind_range]. intros a b c d E H1 H2.
  decide_ind (x <= a)%Z.
  - rewrite !ind_true by lia. lra.
  - generalize (ind_range (x <= b)%Z) (ind_range (x <= c)%Z). nra.
Qed.

Lemma message_ok T (x : table T) : measured T -> lc (message x) /\ summable (message x).
Proof.
  induction T as [r | r l IHl l' IHl']; simpl; intros M.
  - split; [apply lc_times; [apply W_lc; lra | apply lc_from] | apply summable_times; [now apply W_summable | apply lc_from]].
  - destruct M as (R0 & Ml & Ml'). destruct (IHl (fst x) Ml) as [L S]. destruct (IHl' (snd x) Ml') as [L' S'].
    split; [apply lc_times; auto; apply lc_conv; auto using summable_bounded |].
    replace (fun t => _) with (fun t => conv (message (fst x)) (message (snd x)) t * W r t)
      by (apply functional_extensionality; intros; lra).
    apply summable_times; auto using conv_summable.
Qed.

(** A table's weight, with any weight V of its total, is a sum over messages. *)
Lemma weight_message T (x : table T) V : measured T -> bounded V ->
  summable (fun u => weight u * ind (nonneg x u) * V (total u)) /\
  sum (fun u => weight u * ind (nonneg x u) * V (total u)) = sum (fun t => message x t * V t).
Proof.
  revert V. induction T as [r | r l IHl l' IHl']; simpl; intros V M B.
  - split; [| reflexivity]. apply summable_times; auto.
  - destruct M as (R0 & Ml & Ml'). destruct x as [x x']. simpl.
    destruct (message_ok x Ml) as [_ S]. destruct (message_ok x' Ml') as [_ S'].
    set (V' := fun t => W r t * V t). assert (BV : bounded V') by (apply bounded_times; auto).
    assert (BC : bounded (corr (message x') V')).
    { destruct BV as [N [c C]]. split; [intros t; apply sum_nonneg, summable_times; auto; apply (bounded_map (fun a => t + a)%Z); split; eauto |].
      exists (c * sum (message x')). intros t. assert (0 <= c) by (apply Rle_trans with (V' 0%Z); auto).
      rewrite <- sum_scale by auto. apply sum_le; auto using summable_scale. intros a.
      generalize (proj1 S' a) (N (t + a)%Z) (C (t + a)%Z). nra. }
    set (F := fun u => weight u * ind (nonneg x u)).
    set (G := fun (u : table l) (u' : table l') => weight u' * ind (nonneg x' u') * V' (total u + total u')%Z).
    assert (I : forall u, summable (G u) /\ sum (G u) = corr (message x') V' (total u)).
    { intros u. apply (IHl' x' (fun t => V' (total u + t)%Z) Ml' (bounded_map _ BV)). }
    destruct (IHl x (corr (message x') V') Ml BC) as [J E].
    assert (F0 : forall u, 0 <= F u).
    { assert (B1 : bounded (fun _ => 1)) by (split; [intros; lra | exists 1; intros; lra]).
      intros u. generalize (proj1 (proj1 (IHl x (fun _ => 1) Ml B1)) u). fold (F u). lra. }
    assert (D : doubly (fun u u' => F u * G u u')).
    { split; [intros u; apply summable_scale; auto; apply I |].
      replace (fun u => _) with (fun u => F u * corr (message x') V' (total u)); [exact J |].
      apply functional_extensionality. intros u. rewrite sum_scale; auto; [f_equal; symmetry |]; apply I. }
    destruct (sum_pairs D) as [P Q].
    replace (fun u : table l * table l' => _) with (fun p => F (fst p) * G (fst p) (snd p)).
    + split; [exact P |]. rewrite Q.
      replace (fun t => W r t * _ * V t) with (fun t => conv (message x) (message x') t * V' t)
        by (apply functional_extensionality; intros; unfold V'; lra).
      rewrite (proj2 (sum_conv S S' BV)), <- E. apply sum_ext. intros u.
      rewrite sum_scale; auto; [f_equal |]; apply I.
    + apply functional_extensionality. intros [u u']. unfold F, G, V'. simpl.
      replace (ind (nonneg x u /\ nonneg x' u')) with (ind (nonneg x u) * ind (nonneg x' u')); [ring |].
      decide_ind (nonneg x u); decide_ind (nonneg x' u'); [rewrite ind_true | rewrite ind_false ..]; tauto || lra.
Qed.

Lemma normaliser_message T (x : table T) : measured T ->
  summable (fun u => weight u * ind (nonneg x u)) /\ normaliser x = sum (message x).
Proof.
  intros M. assert (B : bounded (fun _ => 1)) by (split; [intros; lra | exists 1; intros; lra]).
  destruct (weight_message x M B) as [S E]. unfold normaliser.
  replace (fun u => weight u * ind (nonneg x u)) with (fun u => weight u * ind (nonneg x u) * 1)
    by (apply functional_extensionality; intros; lra).
  split; [exact S |]. rewrite E. apply sum_ext. intros; lra.
Qed.

(** A record makes the noise below it smaller in the likelihood-ratio order: its leaf may go further down. *)
Lemma raise_lr T (j : place T) x : measured T -> lr (message (raise j x)) (message x).
Proof.
  induction T as [r | r l IHl l' IHl']; simpl; intros M.
  - intros a b H. generalize (proj1 (W_lc (Rlt_le _ _ M)) a) (proj1 (W_lc (Rlt_le _ _ M)) b). intros.
    decide_ind (- x <= a)%Z; [rewrite !ind_true by lia; lra |].
    apply Rle_trans with 0; [nra |]. repeat apply Rmult_le_pos; auto; apply ind_range.
  - destruct M as (R0 & Ml & Ml'). destruct x as [x x']. simpl.
    assert (K : forall f g, lr f g -> lr (fun t => W r t * f t) (fun t => W r t * g t)).
    { intros f g L a b H. generalize (L a b H) (Rmult_le_pos _ _ (proj1 (W_lc R0) a) (proj1 (W_lc R0) b)). nra. }
    destruct j as [j | j]; simpl; apply K.
    + apply lr_conv; try apply message_ok; auto. now apply summable_bounded, message_ok.
    + intros a b H. rewrite !(conv_comm (f := message x)) by (try apply summable_bounded; now apply message_ok).
      revert a b H. apply lr_conv; try apply message_ok; auto. now apply summable_bounded, message_ok.
Qed.

(** log c rises less for one record where there is another. *)
Theorem submodular_from T (j k : place T) x V : measured T -> lc V -> bounded V ->
  let c y := sum (fun t => message y t * V t) in c (raise j (raise k x)) * c x <= c (raise j x) * c (raise k x).
Proof.
  revert V. induction T as [r | r l IHl l' IHl']; intros V M L B c.
  - set (g := fun u => W r u * V u).
    assert (G : summable g /\ lc g) by (split; [apply summable_times | apply lc_times]; auto; apply W_lc; simpl in M; lra).
    assert (I : lc (fun u => ind (u <= 0)%Z) /\ bounded (fun u => ind (u <= 0)%Z)).
    { destruct (lc_from 0) as [[N H] [_ [d D]]]. repeat split; try (intros; apply ind_range); [| exists 1; intros; apply ind_range].
      intros a b e f E H1 H2. assert (K : forall u, ind (u <= 0)%Z = ind (0 <= - u)%Z) by (intros; apply ind_iff; lia).
      rewrite !K, Rmult_comm. apply H; lia. }
    assert (E : forall y, c y = conv g (fun u => ind (u <= 0)%Z) (- y)).
    { intros y. apply sum_ext. intros u. simpl. unfold g. rewrite (@ind_iff (- y <= u)%Z (- y - u <= 0)%Z) by lia. lra. }
    rewrite !E. simpl. apply (proj2 (lc_conv (proj1 G) (proj2 I) (proj2 G) (proj1 I))); lia.
  - simpl in M. destruct M as (R0 & Ml & Ml'). destruct x as [x x'].
    set (V' := fun t => W r t * V t). assert (BV : bounded V') by (apply bounded_times; auto).
    assert (LV : lc V') by (apply lc_times; auto).
    assert (E : forall (y : table l) (y' : table l'), c (y, y') = sum (fun a => message y a * corr (message y') V' a)).
    { intros y y'. rewrite <- (proj2 (sum_conv (proj2 (message_ok y Ml)) (proj2 (message_ok y' Ml')) BV)).
      apply sum_ext. intros t. simpl. unfold V'. lra. }
    assert (E' : forall (y : table l) (y' : table l'), c (y, y') = sum (fun a => message y' a * corr (message y) V' a)).
    { intros y y'. rewrite <- (proj2 (sum_conv (proj2 (message_ok y' Ml')) (proj2 (message_ok y Ml)) BV)).
      apply sum_ext. intros t. simpl. unfold V'.
      rewrite (conv_comm (f := message y')) by (try apply summable_bounded; now apply message_ok). lra. }
    assert (O : forall U (y : table U), measured U -> bounded (corr (message y) V') /\ lc (corr (message y) V')).
    { intros U y H. apply corr_ok; auto; now apply message_ok. }
    assert (A : forall (j : place l) (k : place l') , c (raise j x, raise k x') * c (x, x') <= c (raise j x, x') * c (x, raise k x')).
    { intros i k'. rewrite !E. apply association; try apply O; try apply message_ok; auto using raise_lr.
      apply lr_corr; auto using raise_lr; now apply message_ok. }
    destruct j as [j | j], k as [k | k]; simpl.
    + rewrite !E. apply IHl; auto; now apply O.
    + apply A.
    + rewrite (Rmult_comm (c (x, raise j x'))). apply A.
    + rewrite !E'. apply IHl'; auto; now apply O.
Qed.

Theorem submodular T (j k : place T) x : measured T ->
  normaliser (raise j (raise k x)) * normaliser x <= normaliser (raise j x) * normaliser (raise k x).
Proof.
  intros M. rewrite !(proj2 (normaliser_message _ M)).
  assert (O : lc (fun _ => 1) /\ bounded (fun _ => 1)) by (repeat split; intros; try lra; exists 1; intros; lra).
  assert (E : forall y : table T, sum (message y) = sum (fun t => message y t * 1)) by (intros; apply sum_ext; intros; lra).
  rewrite !E. now apply (@submodular_from T j k x (fun _ => 1)).
Qed.

(** ** Datasets: lists of records *)
Definition counted T (records : list (place T)) (x : table T) : table T := fold_right (@raise T) x records.
Definition counts T (records : list (place T)) := counted records zero.

Lemma nonneg_raise T (j : place T) x u : nonneg x u -> nonneg (raise j x) u.
Proof.
  induction T as [r | r l IHl l' IHl']; simpl; [lia |]. destruct j; simpl; intros [H H']; auto.
Qed.

Lemma normaliser_raise T (j : place T) x : measured T -> normaliser x <= normaliser (raise j x).
Proof.
  intros M. apply sum_le; [| now apply normaliser_message]. intros u.
  generalize (proj1 (proj1 (normaliser_message x M)) u) (proj1 (proj1 (normaliser_message (raise j x) M)) u).
  decide_ind (nonneg x u); [rewrite ind_true by (now apply nonneg_raise); lra |]. lra.
Qed.

Lemma weight_zero T : measured T -> 0 < weight (zero : table T) /\ total (zero : table T) = 0%Z /\ nonneg (zero : table T) zero.
Proof.
  induction T as [r | r l IHl l' IHl']; simpl; intros M; [repeat split; try lia; apply W_zero; lra |].
  destruct M as (R0 & Ml & Ml'). destruct (IHl Ml) as (P & Q & N), (IHl' Ml') as (P' & Q' & N').
  repeat split; auto; [| now rewrite Q, Q']. rewrite Q, Q'. repeat apply Rmult_lt_0_compat; auto.
Qed.

Lemma normaliser_positive T (x : list (place T)) : measured T -> 0 < normaliser (counts x).
Proof.
  intros M. induction x as [| j x IH]; [| eapply Rlt_le_trans; [exact IH | now apply normaliser_raise]].
  destruct (weight_zero M) as (P & _ & N). apply Rlt_le_trans with (weight (zero : table T) * ind (nonneg (zero : table T) zero)).
  - rewrite ind_true by exact N. lra.
  - apply (sum_term (f := fun u : table T => weight u * ind (nonneg (zero : table T) u)) zero). now apply normaliser_message.
Qed.

Lemma counted_raise T (j : place T) x y : counted x (raise j y) = raise j (counted x y).
Proof. induction x as [| k x IH]; simpl; [reflexivity |]. now rewrite IH, raise_comm. Qed.

Lemma counted_app T (x y : list (place T)) : counted x (counts y) = counts (x ++ y).
Proof. unfold counts, counted. now rewrite fold_right_app. Qed.

(** Several records raise log c most from the empty table. *)
Theorem several_records T (x d : list (place T)) : measured T ->
  normaliser (counts (x ++ d)) * normaliser (@counts T []) <= normaliser (counts x) * normaliser (counts d).
Proof.
  intros M. assert (P : forall y : list (place T), 0 < normaliser (counts y)) by (intros; now apply normaliser_positive).
  assert (One : forall (j : place T) (x y : list (place T)), normaliser (raise j (counts (x ++ y))) * normaliser (counts y)
      <= normaliser (raise j (counts y)) * normaliser (counts (x ++ y))).
  { intros j z y. induction z as [| k z IH]; [simpl; lra |].
    generalize (submodular j k (counts (z ++ y)) M) (P (z ++ y)) (P y) (P ((k :: z) ++ y)).
    change (raise k (counts (z ++ y))) with (counts ((k :: z) ++ y)). intros H1 H2 H3 H4.
    apply Rmult_le_reg_r with (normaliser (counts (z ++ y))); [exact H2 |]. nra. }
  induction d as [| j d IH]; [rewrite app_nil_r; lra |].
  replace (counts (x ++ j :: d)) with (raise j (counts (x ++ d))) by (now rewrite <- !counted_app, <- counted_raise).
  change (counts (j :: d)) with (raise j (counts d)).
  generalize (One j x d) (P d) (P []) (P x) (P (x ++ d)). intros H1 H2 H3 H4 H5.
  assert (0 < normaliser (raise j (counts d))) by exact (P (j :: d)).
  apply Rmult_le_reg_r with (normaliser (counts d)); [exact H2 |]. nra.
Qed.

Theorem increments_fall T (x : list (place T)) j : measured T ->
  normaliser (counts (j :: x)) * normaliser (@counts T []) <= normaliser (counts x) * normaliser (counts [j]).
Proof.
  intros M. replace (counts (j :: x)) with (counts (x ++ [j])); [now apply several_records |].
  rewrite <- counted_app. apply counted_raise.
Qed.
End Weights.

(** Draws that are accepted or made again have exactly the law they should (THEORY H8 and H13).

    Proved: of a draw a ~ p that is accepted with probability r(a), and otherwise made again from the start, the accepted
    one has law p r / Σ p r ([accepted_draw]). On a hierarchy let every node have a rough message m > 0 with m >= w S, S the
    sum over divisions among its children by their rough messages (at leaves m >= w). Draw the root's total from its message,
    divide downwards by the messages, accept with probability Π w S / m: the accepted table has exactly the law that is
    proportional to Π w, whatever the messages were ([rough_messages], H8). Messages on a circle are such ([on_circles], H13), and
    a division drawn as "all but one, the last takes the rest", tilted by any factor, has the law it should ([division], H13). *)

From Holdfast Require Export LogConcave Theta.
Set Implicit Arguments.
Unset Strict Implicit.

(** ** Accept, or draw again *)
Lemma geometric_sum x : 0 <= x < 1 -> summable (fun n => x ^ n) /\ sum (fun n => x ^ n) = / (1 - x).
Proof.
  intros H. assert (N : forall n, 0 <= x ^ n) by (intros; now apply pow_le).
  assert (S : summable (fun n => x ^ n)).
  { apply (@summable_by _ _ (/ (1 - x))); auto. intros l D.
    assert (B : exists n, incl l (seq 0 n)).
    { exists (Datatypes.S (list_max l)). intros k K. apply in_seq. assert (L := proj1 (list_max_le l (list_max l)) (Nat.le_refl _)).
      rewrite Forall_forall in L. specialize (L k K). lia. }
    destruct B as [n I]. apply Rle_trans with (lsum (fun n => x ^ n) (seq 0 n)); [now apply lsum_incl |].
    assert (G : forall n k, lsum (fun n => x ^ n) (seq k n) = (x ^ k - x ^ (k + n)) * / (1 - x)).
    { induction n0 as [| m IH]; intros k; simpl; [rewrite Nat.add_0_r; lra |].
      rewrite IH. replace (k + Datatypes.S m)%nat with (Datatypes.S k + m)%nat by lia. simpl. field. lra. }
    rewrite G. simpl. assert (0 < / (1 - x)) by (apply Rinv_0_lt_compat; lra). generalize (N n). nra. }
  split; [exact S |].
  assert (T : summable (fun n => x ^ n * ind (n <> O)) /\ sum (fun n => x ^ n * ind (n <> O)) = sum (fun n => x * x ^ n)).
  { rewrite (sum_ext (f := fun n => x * x ^ n) (g := fun n => x ^ Datatypes.S n * ind (Datatypes.S n <> O))).
    - apply (@sum_injective _ _ Datatypes.S (fun n => x ^ n * ind (n <> O))); [intros; lia | |].
      + intros [| n]; [right; rewrite ind_false; [lra | tauto] | left; now exists n].
      + apply summable_le with (fun n => x ^ n); auto. intros n. rewrite ind_true by lia. generalize (N n). simpl. nra.
    - intros n. rewrite ind_true by lia. simpl. lra. }
  destruct (sum_single (f := fun n => x ^ n) (b := O) (N O)) as [S0 E0].
  assert (E : sum (fun n => x ^ n) = 1 + x * sum (fun n => x ^ n)).
  { rewrite <- (sum_scale (proj1 H) S), <- (proj2 T). transitivity (sum (fun n => x ^ n * ind (n = O)) + sum (fun n => x ^ n * ind (n <> O))).
    - rewrite <- sum_plus by (auto; apply T). apply sum_ext. intros n. decide_ind (n = O); [rewrite ind_false | rewrite ind_true]; tauto || lra.
    - rewrite E0. simpl. reflexivity. }
  apply Rmult_eq_reg_l with (1 - x); [rewrite Rinv_r; lra | lra].
Qed.

(** n draws are rejected, then a is drawn and accepted. *)
Definition after {A} (p r : A -> R) (n : nat) (a : A) := (1 - expect p r) ^ n * (p a * r a).
Definition accepted {A} (p r : A -> R) (a : A) := sum (fun n => after p r n a).

Theorem accepted_draw {A} (p r : A -> R) : law p -> test r -> 0 < expect p r ->
  (forall a, accepted p r a = normal (fun a => p a * r a) a) /\ law (accepted p r).
Proof.
  intros L T P. assert (E : forall a, accepted p r a = normal (fun a => p a * r a) a).
  { intros a. unfold accepted, after, normal. change (sum (fun a => p a * r a)) with (expect p r).
    generalize (expect_range L T) (proj1 (proj1 L) a) (T a) P. generalize (expect p r). intros x Q X Y P0.
    destruct (@geometric_sum (1 - x)) as [S G]; [lra |].
    rewrite (sum_ext (g := fun n => p a * r a * (1 - x) ^ n)) by (intros; ring).
    rewrite (sum_scale (Rmult_le_pos _ _ X (proj1 Y)) S), G. replace (1 - (1 - x)) with x by ring. reflexivity. }
  split; [exact E |]. apply functional_extensionality in E. rewrite E. apply law_normal; [apply summable_test; auto; apply L | exact P].
Qed.

(** All but one are drawn, tilted by any factor e, and the last takes the rest. *)
Theorem division {A} (f last e : A -> R) k : (forall a, 0 <= f a) -> (forall a, 0 < e a) -> 0 < k ->
  summable (fun a => f a * e a) -> 0 < sum (fun a => f a * e a) ->
  summable (fun a => f a * last a) -> 0 < sum (fun a => f a * last a) ->
  test (fun a => last a * k / e a) -> forall a,
  accepted (normal (fun a => f a * e a)) (fun a => last a * k / e a) a = normal (fun a => f a * last a) a.
Proof.
  intros F E K S P S' P' T a. set (z := sum (fun a => f a * e a)) in *.
  assert (Q : (fun a => normal (fun a => f a * e a) a * (last a * k / e a)) = (fun a => k / z * (f a * last a))).
  { apply functional_extensionality. intros b. unfold normal. fold z. specialize (E b). field. lra. }
  assert (K0 : 0 < k / z) by (now apply Rdiv_lt_0_compat).
  assert (X : expect (normal (fun a => f a * e a)) (fun a => last a * k / e a) = k / z * sum (fun a => f a * last a)).
  { unfold expect. rewrite Q. apply sum_scale; auto; lra. }
  destruct (@accepted_draw A (normal (fun a => f a * e a)) (fun a => last a * k / e a)) as [G _]; auto.
  - now apply law_normal.
  - rewrite X. now apply Rmult_lt_0_compat.
  - rewrite G. unfold normal at 1. unfold expect in X. rewrite X. apply (f_equal (fun g => g a)) in Q. rewrite Q. unfold normal. field. lra.
Qed.

(** ** Rough messages *)
Inductive plan := leaf (w m : Z -> R) | node (w m : Z -> R) (l l' : plan).
Definition root (P : plan) := match P with leaf _ m | node _ m _ _ => m end.
Fixpoint table (P : plan) : Type := match P with leaf _ _ => Z | node _ _ l l' => (table l * table l')%type end.
Fixpoint total P : table P -> Z :=
  match P with leaf _ _ => fun u => u | node _ _ l l' => fun u => (total (fst u) + total (snd u))%Z end.

(** What the table should be drawn by. *)
Fixpoint target P : table P -> R :=
  match P with
  | leaf w _ => fun u => w u
  | node w _ l l' => fun u => w (total u) * (target (fst u) * target (snd u))
  end.

(** The probability of a table below a node, given the node's total. *)
Fixpoint split P : table P -> R :=
  match P with
  | leaf _ _ => fun _ => 1
  | node _ _ l l' => fun u => root l (total (fst u)) * root l' (total (snd u)) / conv (root l) (root l') (total u)
      * (split (fst u) * split (snd u))
  end.

(** The probability to accept a table. *)
Fixpoint accept P : table P -> R :=
  match P with
  | leaf w m => fun u => w u / m u
  | node w m l l' => fun u => w (total u) * conv (root l) (root l') (total u) / m (total u) * (accept (fst u) * accept (snd u))
  end.

Fixpoint rough (P : plan) : Prop :=
  match P with
  | leaf w m => summable m /\ (forall t, 0 < m t) /\ forall t, 0 <= w t <= m t
  | node w m l l' => summable m /\ (forall t, 0 < m t) /\ (forall t, 0 <= w t) /\
      (forall t, w t * conv (root l) (root l') t <= m t) /\ rough l /\ rough l'
  end.

Lemma rough_root P : rough P -> summable (root P) /\ forall t, 0 < root P t.
Proof. destruct P; simpl; tauto. Qed.

Lemma divisions P P' t : rough P -> rough P' -> summable (fun a => root P a * root P' (t - a)%Z) /\ 0 < conv (root P) (root P') t.
Proof.
  intros H H'. destruct (rough_root H) as [S Q], (rough_root H') as [S' Q'].
  assert (D : summable (fun a => root P a * root P' (t - a)%Z))
    by (apply summable_times; auto; apply (bounded_map (fun a => t - a)%Z), summable_bounded, S').
  split; [exact D |]. apply Rlt_le_trans with (root P 0%Z * root P' (t - 0)%Z); [now apply Rmult_lt_0_compat |].
  exact (sum_term 0%Z D).
Qed.

Lemma split_nonneg P u : rough P -> 0 <= split (P := P) u.
Proof.
  induction P as [w m | w m l IHl l' IHl']; simpl; [lra |]. intros (_ & _ & _ & _ & Hl & Hl').
  apply Rmult_le_pos; [| apply Rmult_le_pos; auto]. left. apply Rdiv_lt_0_compat; [| now apply divisions].
  apply Rmult_lt_0_compat; now apply rough_root.
Qed.

Lemma accept_range P : rough P -> test (@accept P).
Proof.
  induction P as [w m | w m l IHl l' IHl']; simpl; intros H u.
  - destruct H as (_ & Q & B). specialize (Q u); specialize (B u). split; [apply Rmult_le_pos; [lra | left; now apply Rinv_0_lt_compat] |].
    apply Rmult_le_reg_r with (m u); [exact Q |]. field_simplify; lra.
  - destruct H as (_ & Q & W & B & Hl & Hl'). destruct u as [u u']. simpl. specialize (IHl Hl u). specialize (IHl' Hl' u').
    set (t := (total u + total u')%Z). specialize (Q t); specialize (B t); specialize (W t). generalize (proj2 (divisions t Hl Hl')). intros C.
    assert (0 <= w t * conv (root l) (root l') t / m t <= 1).
    { split; [apply Rmult_le_pos; [nra | left; now apply Rinv_0_lt_compat] |].
      apply Rmult_le_reg_r with (m t); [exact Q |]. field_simplify; lra. }
    assert (0 <= accept u * accept u' <= 1) by nra. nra.
Qed.

(** The draws cancel all messages. *)
Lemma cancel P u : rough P -> root P (total u) * split u * accept u = target (P := P) u.
Proof.
  induction P as [w m | w m l IHl l' IHl']; intros H.
  - simpl in *. destruct H as (_ & Q & _). specialize (Q u). field. lra.
  - destruct H as (_ & Q & _ & _ & Hl & Hl'). destruct u as [u u']. simpl. rewrite <- (IHl u Hl), <- (IHl' u' Hl').
    set (t := (total u + total u')%Z). specialize (Q t). generalize (proj2 (divisions t Hl Hl')). intros C. field. lra.
Qed.

(** Whatever is summed over tables by their total alone is summed over totals. *)
Lemma by_total P F : rough P -> (forall t, 0 <= F t) -> summable (fun t => root P t * F t) ->
  summable (fun u : table P => root P (total u) * split u * F (total u)) /\
  sum (fun u : table P => root P (total u) * split u * F (total u)) = sum (fun t => root P t * F t).
Proof.
  revert F. induction P as [w m | w m l IHl l' IHl']; intros F H F0 S.
  - simpl in *. replace (fun u => m u * 1 * F u) with (fun t => m t * F t) by (apply functional_extensionality; intros; ring). auto.
  - destruct H as (Sm & Q & _ & _ & Hl & Hl'). simpl root in *. simpl split.
    destruct (rough_root Hl) as [S1 P1], (rough_root Hl') as [S2 P2].
    set (C := conv (root l) (root l')). assert (C0 : forall t, 0 < C t) by (intros; now apply divisions).
    set (k t := m t * F t / C t).
    assert (K0 : forall t, 0 <= k t) by (intros; apply Rmult_le_pos; [apply S | left; apply Rinv_0_lt_compat, C0]).
    (* totals first, then pairs *)
    assert (D : doubly (fun t a => k t * (root l a * root l' (t - a)%Z))).
    { split; [intros t; apply summable_scale; auto; now apply divisions |].
      replace (fun t => _) with (fun t => m t * F t); [exact S |]. apply functional_extensionality. intros t.
      rewrite sum_scale by (auto; now apply divisions). change (m t * F t = k t * C t). unfold k. generalize (C0 t). intros. field. lra. }
    assert (Move : forall a (g : Z -> R), summable (fun t => g (t - a)%Z) -> summable g /\ sum g = sum (fun t => g (t - a)%Z)).
    { intros a g G. destruct (@sum_bijection Z Z (fun b => b + a)%Z (fun t => t - a)%Z (fun t => g (t - a)%Z) ltac:(intros; cbv beta; lia) ltac:(intros; cbv beta; lia) G) as [G1 G2].
      replace (fun b => g (b + a - a)%Z) with g in * by (apply functional_extensionality; intros; f_equal; lia). auto. }
    assert (DF := doubly_flip D).
    assert (Row : forall a, summable (fun b => root l' b * k (a + b)%Z) /\
      sum (fun t => k t * (root l a * root l' (t - a)%Z)) = root l a * sum (fun b => root l' b * k (a + b)%Z)).
    { intros a. destruct (Move a (fun b => root l a * (root l' b * k (a + b)%Z))) as [G1 G2].
      - replace (fun t => _) with (fun t => k t * (root l a * root l' (t - a)%Z)); [apply DF |].
        apply functional_extensionality. intros t. replace (a + (t - a))%Z with t by lia. ring.
      - assert (R : summable (fun b => root l' b * k (a + b)%Z)).
        { replace (fun b => root l' b * k (a + b)%Z) with (fun b => / root l a * (root l a * (root l' b * k (a + b)%Z))).
          - apply summable_scale; [left; apply Rinv_0_lt_compat, P1 | exact G1].
          - apply functional_extensionality. intros b. specialize (P1 a). field. lra. }
        split; [exact R |]. rewrite <- sum_scale by (auto; left; apply P1). rewrite G2. apply sum_ext. intros t.
        replace (a + (t - a))%Z with t by lia. ring. }
    set (G a := sum (fun b => root l' b * k (a + b)%Z)).
    assert (SG : summable (fun a => root l a * G a) /\ sum (fun a => root l a * G a) = sum (fun t => m t * F t)).
    { replace (fun a => root l a * G a) with (fun a => sum (fun t => k t * (root l a * root l' (t - a)%Z)))
        by (apply functional_extensionality; intros a; apply Row).
      split; [apply DF |]. rewrite (swap D). apply sum_ext. intros t. rewrite sum_scale by (auto; now apply divisions).
      change (k t * C t = m t * F t). unfold k. generalize (C0 t). intros. field. lra. }
    assert (G0 : forall a, 0 <= G a) by (intros a; apply sum_nonneg, Row).
    destruct (IHl G Hl G0 (proj1 SG)) as [SL EL].
    assert (I' : forall a, summable (fun u' : table l' => root l' (total u') * split u' * k (a + total u')%Z) /\
      sum (fun u' : table l' => root l' (total u') * split u' * k (a + total u')%Z) = G a).
    { intros a. apply (IHl' (fun b => k (a + b)%Z) Hl'); auto. apply Row. }
    set (f (u : table l) := root l (total u) * split u).
    set (g (u : table l) (u' : table l') := root l' (total u') * split u' * k (total u + total u')%Z).
    assert (f0 : forall u, 0 <= f u) by (intros u; apply Rmult_le_pos; [left; apply P1 | now apply split_nonneg]).
    assert (DT : doubly (fun u u' => f u * g u u')).
    { split; [intros u; apply summable_scale; auto; apply I' |].
      replace (fun u => _) with (fun u => f u * G (total u)); [exact SL |]. apply functional_extensionality. intros u.
      rewrite sum_scale by (auto; apply I'). f_equal. symmetry. apply I'. }
    destruct (sum_pairs DT) as [SP EP].
    replace (fun u : table (node w m l l') => _) with (fun p => f (fst p) * g (fst p) (snd p)).
    + split; [exact SP |]. etransitivity; [exact EP |]. rewrite <- (proj2 SG), <- EL. apply sum_ext. intros u. rewrite sum_scale by (auto; apply I'). f_equal. apply I'.
    + apply functional_extensionality. intros [u u']. unfold f, g, k. simpl. fold C. generalize (C0 (total u + total u')%Z). intros. field. lra.
Qed.

(** The law of the table that is drawn. *)
Definition drawn P (u : table P) := root P (total u) / sum (root P) * split u.

Theorem rough_messages P : rough P -> 0 < sum (@target P) ->
  law (@drawn P) /\ (forall u, accepted (@drawn P) (@accept P) u = normal (@target P) u).
Proof.
  intros H W. destruct (rough_root H) as [S Q].
  assert (Z : 0 < sum (root P)) by (apply Rlt_le_trans with (root P 0%Z); auto; now apply sum_term).
  assert (I : 0 <= / sum (root P)) by (left; now apply Rinv_0_lt_compat).
  destruct (@by_total P (fun _ => / sum (root P)) H (fun _ => I)) as [SD ED].
  { replace (fun t => root P t * / sum (root P)) with (fun t => / sum (root P) * root P t) by (apply functional_extensionality; intros; ring). now apply summable_scale. }
  assert (L : law (@drawn P)).
  { replace (@drawn P) with (fun u : table P => root P (total u) * split u * / sum (root P))
      by (apply functional_extensionality; intros u; unfold drawn; field; lra).
    split; [exact SD |]. rewrite ED, (sum_ext (g := fun t => / sum (root P) * root P t)) by (intros; ring).
    rewrite sum_scale by auto. apply Rinv_l. lra. }
  split; [exact L |].
  assert (T : (fun u : table P => drawn u * accept u) = (fun u => / sum (root P) * target u)).
  { apply functional_extensionality. intros u. rewrite <- (cancel u H). unfold drawn. field. lra. }
  assert (ST : summable (@target P)).
  { replace (@target P) with (fun u : table P => sum (root P) * (drawn u * accept u)).
    - apply summable_scale; [lra |]. apply summable_test; [apply L | now apply accept_range].
    - apply functional_extensionality. intros u. apply (f_equal (fun f => f u)) in T. rewrite T. field. lra. }
  assert (E : expect (@drawn P) (@accept P) = / sum (root P) * sum (@target P)) by (unfold expect; rewrite T; now apply sum_scale).
  destruct (@accepted_draw _ (@drawn P) (@accept P) L (accept_range H)) as [G _].
  { rewrite E. apply Rmult_lt_0_compat; [now apply Rinv_0_lt_compat | exact W]. }
  intros u. rewrite G. unfold normal at 1. unfold expect in E. rewrite E. apply (f_equal (fun f => f u)) in T. rewrite T. unfold normal.
  field. lra.
Qed.

(** ** Circles: aliases only add *)
Theorem on_circles (S w Q : Z -> R) n : (0 < n)%Z -> summable S -> (forall t, 0 <= w t) ->
  (forall r, (0 <= r < n)%Z -> sum (fun k => S (r + k * n)%Z) <= Q r) ->
  forall t, w t * S t <= w t * Q (t mod n)%Z.
Proof.
  intros N Sm W H t. apply Rmult_le_compat_l; [apply W |]. eapply Rle_trans; [| apply H, Z.mod_pos_bound, N].
  replace (S t) with (S (t mod n + t / n * n))%Z by (f_equal; rewrite (Z.div_mod t n) at 3; lia).
  apply (sum_term (f := fun k => S (t mod n + k * n)%Z) (t / n)%Z).
  apply (@summable_by _ _ (sum S)); [intros; apply Sm |]. intros l D.
  rewrite <- (lsum_map S (fun k => t mod n + k * n)%Z). apply sum_upper; [exact Sm |].
  apply Injective_map_NoDup; [| exact D]. intros a b E. nia.
Qed.

(** Laplace noise on a hierarchy given that no leaf is negative (THEORY H1, add-remove), hypotheses as in Trees.v.

    Proved: the guarantee is exactly max_j (ε_j + log(c_{e_j} / c_0)), ε_j the sum of rates over leaf j: it holds
    ([tree_price]) and no smaller number does ([tree_price_exact]). A record that may change several counts, or several
    records: ε of the change and log(c_d / c_0) ([tree_price_several], upper bound). One cell: r + log(1 + α - α²),
    α = e^(-r) ([one_cell_price]). *)

From Holdfast Require Export Trees.
Set Implicit Arguments.
Unset Strict Implicit.

Lemma laplace1_lc r : 0 <= r -> lc (laplace1 r).
Proof.
  intros R0. split; [intros; left; apply exp_pos |]. intros a b c d E H1 H2. unfold laplace1. rewrite <- !exp_plus.
  apply exp_le. assert (IZR (Z.abs b) + IZR (Z.abs c) <= IZR (Z.abs a) + IZR (Z.abs d)); [| nra].
  rewrite <- !plus_IZR. apply IZR_le. lia.
Qed.

Lemma laplace1_bounded r : 0 <= r -> bounded (laplace1 r).
Proof.
  intros R0. split; [intros; left; apply exp_pos |]. exists 1. intros a. rewrite <- exp_0. apply exp_le.
  assert (0 <= IZR (Z.abs a)) by (apply IZR_le; lia). nra.
Qed.

Lemma laplace1_zero r : laplace1 r 0 = 1.
Proof. unfold laplace1. simpl. rewrite Rmult_0_r, Ropp_0. apply exp_0. Qed.

Lemma laplace1_zero_pos r : 0 <= r -> 0 < laplace1 r 0.
Proof. rewrite laplace1_zero. lra. Qed.

Lemma laplace1_step r u : 0 <= r -> laplace1 r (u - 1) <= exp r * laplace1 r u /\ laplace1 r u <= exp r * laplace1 r (u - 1).
Proof.
  intros R0. unfold laplace1. rewrite <- !exp_plus. split; apply exp_le.
  - assert (IZR (Z.abs u) <= IZR (Z.abs (u - 1)) + 1) by (rewrite <- plus_IZR; apply IZR_le; lia). nra.
  - assert (IZR (Z.abs (u - 1)) <= IZR (Z.abs u) + 1) by (rewrite <- plus_IZR; apply IZR_le; lia). nra.
Qed.

Section Price.
Variable T : tree.
Hypothesis M : measured T.
Let weight := @weight laplace1.
Let normaliser := @normaliser laplace1.

Lemma total_raise U (j : place U) z y : total (sub z (raise j y)) = (total (sub z y) - 1)%Z.
Proof.
  induction U as [r | r l IHl l' IHl']; simpl; [unfold sub; simpl; lia |].
  destruct j as [j | j], y as [y y'], z as [z z']; simpl; [specialize (IHl j z y) | specialize (IHl' j z' y')];
    unfold sub in *; simpl in *; lia.
Qed.

Lemma weight_positive U (u : table U) : 0 < weight u.
Proof.
  induction U as [r | r l IHl l' IHl']; unfold weight; simpl; [apply exp_pos |].
  repeat apply Rmult_lt_0_compat; [apply exp_pos | apply IHl | apply IHl'].
Qed.

Lemma weight_raise U (j : place U) z y : measured U ->
  weight (sub z (raise j y)) <= exp (path j) * weight (sub z y) /\
  weight (sub z y) <= exp (path j) * weight (sub z (raise j y)).
Proof.
  induction U as [r | r l IHl l' IHl']; intros Mu.
  - change (laplace1 r (z - (y + 1)) <= exp r * laplace1 r (z - y) /\ laplace1 r (z - y) <= exp r * laplace1 r (z - (y + 1))).
    replace (z - (y + 1))%Z with (z - y - 1)%Z by lia. apply laplace1_step. simpl in Mu. lra.
  - destruct Mu as (R0 & Ml & Ml').
    assert (Q : forall u : table (node r l l'), weight u = laplace1 r (total u) * (weight (fst u) * weight (snd u))) by reflexivity.
    rewrite !Q, total_raise. destruct (laplace1_step (total (sub z y)) R0) as [A B].
    assert (P : forall V (u : table V), 0 <= weight u) by (intros; left; apply weight_positive).
    assert (L0 : forall u, 0 <= laplace1 r u) by (intros; left; apply exp_pos).
    assert (N : forall e a a' b b' c, 0 <= a -> 0 <= b -> 0 <= c -> a <= exp r * a' -> b <= exp e * b' ->
      a * (b * c) <= exp (r + e) * (a' * (b' * c)) /\ a * (c * b) <= exp (r + e) * (a' * (c * b'))).
    { intros e a a' b b' c Ha Hb Hc H1 H2. rewrite exp_plus.
      assert (a * b <= exp r * a' * (exp e * b')) by (now apply Rmult_le_compat). split; nra. }
    destruct y as [y y'], z as [z z'], j as [j | j].
    + destruct (IHl j z y Ml) as [C D]. split; [exact (proj1 (N (path j) _ _ _ _ (weight (sub z' y')) (L0 _) (P _ _) (P _ _) A C)) | exact (proj1 (N (path j) _ _ _ _ (weight (sub z' y')) (L0 _) (P _ _) (P _ _) B D))].
    + destruct (IHl' j z' y' Ml') as [C D]. split; [exact (proj2 (N (path j) _ _ _ _ (weight (sub z y)) (L0 _) (P _ _) (P _ _) A C)) | exact (proj2 (N (path j) _ _ _ _ (weight (sub z y)) (L0 _) (P _ _) (P _ _) B D))].
Qed.

(** What is allowed: no leaf of the output is negative. *)
Definition allowed (z : table T) := nonneg zero z.
Definition released (x : list (place T)) := given (around (@counts T) (@weight T) x) allowed.
Definition add_remove (j : place T) (x x' : list (place T)) :=
  counts x' = raise j (counts x) \/ counts x = raise j (counts x').
Definition neighbours x x' := exists j, add_remove j x x'.
Definition price (j : place T) := path j + ln (normaliser (counts [j]) / normaliser (@counts T [])).

Lemma nonneg_sub U (y z : table U) : nonneg y (sub z y) <-> nonneg zero z.
Proof.
  induction U as [r | r l IHl l' IHl']; [change ((- y <= z - y)%Z <-> (- 0 <= z)%Z); lia |].
  destruct y as [y y'], z as [z z']. specialize (IHl y z). specialize (IHl' y' z').
  change (nonneg y (sub z y) /\ nonneg y' (sub z' y') <-> nonneg zero z /\ nonneg zero z'). tauto.
Qed.

Lemma released_mass x : summable (fun z => around (@counts T) (@weight T) x z * ind (allowed z)) /\
  mass (around (@counts T) (@weight T) x) allowed = normaliser (counts x).
Proof.
  destruct (normaliser_message laplace1_lc laplace1_summable laplace1_bounded (counts x) M) as [S _].
  destruct (sum_shift (counts x) S) as [S' E]. unfold mass.
  replace (fun z => around (@counts T) (@weight T) x z * ind (allowed z))
    with (fun z => Trees.weight laplace1 (sub z (counts x)) * ind (nonneg (counts x) (sub z (counts x)))); [auto |].
  apply functional_extensionality. intros z. unfold around, weight. f_equal. apply ind_iff, nonneg_sub.
Qed.

Lemma positive (x : list (place T)) : 0 < normaliser (counts x).
Proof. apply normaliser_positive; auto using laplace1_lc, laplace1_summable, laplace1_bounded, laplace1_zero_pos. Qed.

Lemma released_law x : law (released x).
Proof.
  destruct (released_mass x) as [S E]. unfold released. apply (law_normal S). unfold mass in E. rewrite E. apply positive.
Qed.

Lemma released_ratio d a b x x' z : mass (around (@counts T) (@weight T) x) allowed = a ->
  mass (around (@counts T) (@weight T) x') allowed = b -> 0 < a -> 0 < b ->
  weight (sub z (counts x)) <= exp d * weight (sub z (counts x')) ->
  released x z <= exp (d + ln (b / a)) * released x' z.
Proof.
  intros A B Pa Pb H. unfold released, given. rewrite A, B, exp_plus, exp_ln by (now apply Rdiv_lt_0_compat).
  unfold around. generalize (ind_range (allowed z)). intros I.
  replace (_ * (_ * _ / b)) with (exp d * weight (sub z (counts x')) * (ind (allowed z) / a)) by (field; lra).
  unfold Rdiv. rewrite Rmult_assoc. apply Rmult_le_compat_r; auto.
  apply Rmult_le_pos; [lra | left; now apply Rinv_0_lt_compat].
Qed.

Lemma ratio_le a b a' b' : 0 < a -> 0 < b -> 0 < a' -> 0 < b' -> b * a' <= b' * a -> ln (b / a) <= ln (b' / a').
Proof.
  intros. assert (L : b / a <= b' / a').
  { apply Rmult_le_reg_r with (a * a'); [nra |].
    replace (b / a * (a * a')) with (b * a') by (field; lra). replace (b' / a' * (a * a')) with (b' * a) by (field; lra). lra. }
  destruct L as [L | ->]; [left; apply ln_increasing; auto; now apply Rdiv_lt_0_compat | right; reflexivity].
Qed.

Theorem tree_price eps : (forall j, price j <= eps) -> pure neighbours eps released.
Proof.
  intros H. apply pure_pointwise; [apply released_law |]. intros x x' [j N] z. specialize (H j). unfold price in H.
  destruct (released_mass x) as [_ E], (released_mass x') as [_ E'].
  apply Rle_trans with (exp (path j + ln (normaliser (counts x') / normaliser (counts x))) * released x' z).
  - apply released_ratio; auto using positive.
    destruct N as [-> | ->]; apply weight_raise, M.
  - apply Rmult_le_compat_r; [apply released_law |]. apply exp_le. eapply Rle_trans; [| exact H]. apply Rplus_le_compat_l.
    apply ratio_le; auto using positive. destruct N as [E1 | E1]; rewrite E1.
    + rewrite (Rmult_comm (normaliser (counts [j]))).
      apply (increments_fall laplace1_lc laplace1_summable laplace1_bounded laplace1_zero_pos x j M).
    + assert (R : forall y, normaliser y <= normaliser (raise j y))
        by (intros; apply normaliser_raise; auto using laplace1_lc, laplace1_summable, laplace1_bounded).
      rewrite (Rmult_comm (normaliser (counts [j]))). apply Rmult_le_compat; try (left; apply positive); [apply R |].
      exact (R (@counts T [])).
Qed.

(** Datasets that have records y in common, beside which one has e and the other d: at most log(c_d / c_0) more than
    the same change costs without bounds. *)
Theorem tree_price_several (near : list (place T) -> list (place T) -> Prop) eps :
  (forall x x', near x x' -> exists y d e a, counts x = counts (e ++ y) /\ counts x' = counts (d ++ y) /\
    (forall z, weight (sub z (counts x)) <= exp a * weight (sub z (counts x'))) /\
    a + ln (normaliser (counts d) / normaliser (@counts T [])) <= eps) -> pure near eps released.
Proof.
  intros H. apply pure_pointwise; [apply released_law |]. intros x x' N z.
  destruct (H x x' N) as (y & d & e & a & E & E' & W & L).
  apply Rle_trans with (exp (a + ln (normaliser (counts x') / normaliser (counts x))) * released x' z).
  - apply released_ratio; auto using positive; apply released_mass.
  - apply Rmult_le_compat_r; [apply released_law |]. apply exp_le. eapply Rle_trans; [| exact L]. apply Rplus_le_compat_l.
    apply ratio_le; auto using positive. rewrite E, E'.
    apply Rle_trans with (normaliser (counts d) * normaliser (counts y)).
    + apply (several_records laplace1_lc laplace1_summable laplace1_bounded laplace1_zero_pos d y M).
    + apply Rmult_le_compat_l; [left; apply positive |]. clear - M. induction e as [| j e IH]; [right; reflexivity |].
      eapply Rle_trans; [exact IH |]. apply normaliser_raise; auto using laplace1_lc, laplace1_summable, laplace1_bounded.
Qed.

Lemma weight_unit U (j : place U) :
  total (zero : table U) = 0%Z /\ weight (zero : table U) = 1 /\ weight (sub zero (raise j zero) : table U) = exp (- path j).
Proof.
  induction U as [r | r l IHl l' IHl'].
  - repeat split; [apply laplace1_zero |]. change (laplace1 r (-1) = exp (- r)). unfold laplace1. simpl. f_equal. lra.
  - assert (Z0 : forall V, total (zero : table V) = 0%Z /\ weight (zero : table V) = 1).
    { clear. induction V as [r | r l [A B] l' [C D]]; [split; [reflexivity | apply laplace1_zero] |].
      split; [change (total (zero : table l) + total (zero : table l') = 0)%Z; lia |].
      change (laplace1 r (total (zero : table l) + total (zero : table l')) * (weight (zero : table l) * weight (zero : table l')) = 1).
      rewrite A, B, C, D. simpl. rewrite laplace1_zero. lra. }
    split; [apply Z0 | split; [apply Z0 |]].
    assert (Q : forall u : table (node r l l'), weight u = laplace1 r (total u) * (weight (fst u) * weight (snd u))) by reflexivity.
    rewrite Q, total_raise, sub_self, (proj1 (Z0 _)).
    assert (S : forall V, weight (sub zero zero : table V) = 1) by (intros; rewrite sub_self; apply Z0).
    destruct j as [j | j].
    + change (laplace1 r (-1) * (weight (sub zero (raise j zero) : table l) * weight (sub zero zero : table l')) = exp (- (r + path j))).
      rewrite S, (proj2 (proj2 (IHl j))), Ropp_plus_distr, exp_plus. unfold laplace1. simpl. rewrite Rmult_1_r. lra.
    + change (laplace1 r (-1) * (weight (sub zero zero : table l) * weight (sub zero (raise j zero) : table l')) = exp (- (r + path j))).
      rewrite S, (proj2 (proj2 (IHl' j))), Ropp_plus_distr, exp_plus. unfold laplace1. simpl. rewrite Rmult_1_r. lra.
Qed.

(** The empty table and the output 0 show that no smaller number holds. *)
Theorem tree_price_exact eps : pure neighbours eps released <-> forall j, price j <= eps.
Proof.
  split; [| apply tree_price]. intros H j. rewrite pure_pointwise in H by apply released_law.
  specialize (H [] [j] (ex_intro _ j (or_introl eq_refl)) zero). unfold released, given in H.
  rewrite !(proj2 (released_mass _)) in H. unfold around in H.
  change (@counts T []) with (zero : table T) in H at 1. change (counts [j]) with (raise j (zero : table T)) in H at 1.
  destruct (weight_unit j) as (_ & O & U). rewrite sub_self, O, U in H.
  rewrite ind_true in H by (apply weight_zero with (W := laplace1); auto using laplace1_zero_pos).
  set (a := normaliser (@counts T [])) in *. set (b := normaliser (counts [j])) in *.
  assert (Pa : 0 < a) by apply positive. assert (Pb : 0 < b) by apply positive.
  apply Rmult_le_compat_r with (r := b) in H; [| lra].
  replace (1 * 1 / a * b) with (b / a) in H by (field; lra).
  replace (exp eps * _ * b) with (exp (eps - path j)) in H by (unfold Rminus; rewrite exp_plus; field; lra).
  unfold price. fold a b. assert (ln (b / a) <= eps - path j); [| lra]. rewrite <- (ln_exp (eps - path j)).
  destruct H as [H | ->]; [left; apply ln_increasing; auto; now apply Rdiv_lt_0_compat | right; reflexivity].
Qed.
End Price.

(** ** One cell *)
Theorem one_cell_price r eps : 0 < r ->
  (pure (@neighbours (leaf r)) eps (@released (leaf r)) <-> r + ln (1 + exp (- r) - exp (- r) * exp (- r)) <= eps).
Proof.
  intros R0. rewrite (@tree_price_exact (leaf r) R0). set (a := exp (- r)).
  assert (A : 0 < a < 1) by (split; [apply exp_pos |]; rewrite <- exp_0; apply exp_increasing; lra).
  set (g := fun u => laplace1 r u * ind (0 <= u)%Z).
  assert (S : summable g) by (apply summable_times; [now apply laplace1_summable | apply lc_from]).
  assert (One : forall b c, 0 <= c -> summable (fun u : Z => c * ind (u = b)) /\ sum (fun u : Z => c * ind (u = b)) = c)
    by (intros b c C; apply (sum_single (f := fun _ => c)); exact C).
  assert (G : sum g = 1 + a * sum g).
  { destruct (sum_move 1 S) as [S1 E1]. destruct (One 0%Z 1 ltac:(lra)) as [S2 E2].
    transitivity (sum (fun u : Z => 1 * ind (u = 0%Z)) + a * sum (fun u => g (u - 1)%Z)); [| now rewrite E1, E2].
    rewrite <- sum_scale; [| lra | exact S1]. rewrite <- sum_plus; [| exact S2 | apply summable_scale; [lra | exact S1]]. apply sum_ext. intros u. unfold g.
    destruct (Z.lt_trichotomy u 0) as [L | [-> | L]].
    - rewrite !ind_false by lia. lra.
    - rewrite laplace1_zero, !ind_true, ind_false by lia. lra.
    - rewrite (ind_false (P := u = 0%Z)), !ind_true by lia. unfold a, laplace1. rewrite !Rmult_1_r, Rmult_0_r, Rplus_0_l, <- exp_plus.
      f_equal. rewrite !Z.abs_eq, minus_IZR by lia. lra. }
  assert (N0 : normaliser laplace1 (@counts (leaf r) []) = sum g) by reflexivity.
  assert (N1 : forall j, normaliser laplace1 (@counts (leaf r) [j]) = a + sum g).
  { intros j. rewrite <- (proj2 (One (-1)%Z a ltac:(lra))), <- sum_plus by (auto; apply One; lra).
    apply sum_ext. intros u. change (laplace1 r u * ind (- (0 + 1) <= u)%Z = a * ind (u = -1)%Z + g u). unfold g.
    destruct (Z.lt_trichotomy u (-1)) as [L | [-> | L]].
    - rewrite !ind_false by lia. lra.
    - rewrite (ind_false (P := (0 <= -1)%Z)), !ind_true by lia. unfold a, laplace1. simpl. rewrite !Rmult_1_r. lra.
    - rewrite (ind_false (P := u = (-1)%Z)), !ind_true by lia. lra. }
  assert (E : forall j : place (leaf r), price j = r + ln (1 + a - a * a)).
  { intros j. unfold price. rewrite N0, N1. simpl. do 2 f_equal. assert (sum g = / (1 - a)) as -> by (apply Rmult_eq_reg_l with (1 - a); [rewrite Rinv_r; lra | lra]).
    field. lra. }
  split; [intros H; rewrite <- (E tt); apply H | intros H j; rewrite E; exact H].
Qed.

(** A Gaussian sum over a lattice is largest where it is centred at a lattice point.

    On a commutative group without elements of order two, with a symmetric bi-additive form b and q(u) = b(u, u), let
    θ(t) = Σ e^(-q(u - t d)) over the u in a subgroup N that holds d (with u + u, it holds u). Then θ(t) <= θ(0) for all
    real t >= 0 ([theta_largest]). The usual proof is Poisson summation. This one needs only sums: with s = n + m and
    e = n - m, θ(t)² = Σ_k g_k(t) g_k(0) and θ(2t) θ(0) = Σ_k g_k(t)², k the classes of N modulo 2; so θ(t)⁴ <= θ(2t) θ(0)³
    by Cauchy–Schwarz, and the largest θ cannot be above θ(0). *)

From Holdfast Require Export Laplace.
Set Implicit Arguments.
Unset Strict Implicit.

(** A one-to-one map, not onto: the sum over its image. *)
Lemma sum_injective {A B} (h : A -> B) (f : B -> R) : (forall a a', h a = h a' -> a = a') ->
  (forall b, (exists a, h a = b) \/ f b = 0) -> summable (fun a => f (h a)) ->
  summable f /\ sum f = sum (fun a => f (h a)).
Proof.
  intros I O S. destruct (sum_fibres h S) as (_ & F & E). rewrite <- E.
  replace f with (fun b => sum (fun a => f (h a) * ind (h a = b))) at 1 2; [auto |].
  apply functional_extensionality. intros b. destruct (classic (exists a, h a = b)) as [[a <-] | N].
  - rewrite (sum_ext (g := fun c => f (h c) * ind (c = a))).
    + apply (sum_single (f := fun c => f (h c))), S.
    + intros c. f_equal. apply ind_iff. split; [apply I | now intros ->].
  - destruct (O b) as [| ->]; [contradiction |].
    rewrite (sum_ext (g := fun _ => 0)); [apply sum_zero |]. intros a. rewrite ind_false; [lra |]. intros H. apply N. eauto.
Qed.

Lemma nat_above t : exists n, t <= INR n.
Proof.
  exists (Z.to_nat (up t)). destruct (archimed t) as [A _]. rewrite INR_IZR_INZ.
  apply Rle_trans with (IZR (up t)); [lra | apply IZR_le; lia].
Qed.

Section Theta.
Context {V K : Type} `{Group V} (b : V -> V -> R) (N : V -> Prop) (class : V -> K) (d : V).
Hypothesis b_sym : forall u v, b u v = b v u.
Hypothesis b_add : forall u v t, b (add u v) t = b u t + b v t.
Hypothesis N_zero : N zero.
Hypothesis N_sub : forall u v, N u -> N v -> N (sub u v).
Hypothesis N_half : forall u, N (add u u) -> N u.
Hypothesis no_order_two : forall u v, add u u = add v v -> u = v.
Hypothesis classes : forall u v, class u = class v <-> exists m, u = add v (add m m).
Let q u := b u u.
Hypothesis S : forall c, 0 < c -> summable (fun u => exp (- (c * q u)) * ind (N u)).
Hypothesis N_d : N d.

(** The weight e^(-c q(u - t d)) on N. *)
Definition bell c t u := exp (- (c * (q u - 2 * t * b u d + t * t * q d))) * ind (N u).

Lemma b_sub u v t : b (sub u v) t = b u t - b v t.
Proof. assert (E := b_add (sub u v) v t). rewrite sub_add in E. lra. Qed.

Lemma b_right u v t : b t (add u v) = b t u + b t v /\ b t (sub u v) = b t u - b t v.
Proof. rewrite !(b_sym t). auto using b_add, b_sub. Qed.

Ltac expand := unfold q; rewrite ?(proj1 (b_right _ _ _)), ?(proj2 (b_right _ _ _)), ?b_add, ?b_sub.

Lemma N_add u v : N u -> N v -> N (add u v).
Proof.
  intros U W. replace (add u v) with (sub u (sub zero v)); [auto |]. apply add_cancel with (sub zero v).
  rewrite sub_add, <- add_assoc, (add_comm v), sub_add, add_zero. reflexivity.
Qed.

Lemma bell_0 c u : bell c 0 u = exp (- (c * q u)) * ind (N u).
Proof. unfold bell. do 3 f_equal. lra. Qed.

Lemma bell_step c t u : bell c (t + 1) u = bell c t (sub u d).
Proof.
  unfold bell. f_equal.
  - f_equal. expand. rewrite (b_sym d u). lra.
  - apply ind_iff. split; [intros; now apply N_sub |]. intros U. rewrite <- (sub_add u d). now apply N_add.
Qed.

(** Between two lattice points: at most a constant times both. *)
Lemma bell_between c t : 0 < c -> 0 <= t <= 1 ->
  summable (bell c t) /\ sum (bell c t) <= 2 * exp (c * Rabs (q d)) * sum (bell c 0).
Proof.
  intros C T. assert (B0 : summable (bell c 0)).
  { replace (bell c 0) with (fun u => exp (- (c * q u)) * ind (N u)); [now apply S |].
    apply functional_extensionality. intros; now rewrite bell_0. }
  destruct (sum_shift d B0) as [B1 E1]. set (k := exp (c * Rabs (q d))).
  assert (L : forall u, 0 <= bell c t u <= k * (bell c 0 u + bell c 0 (sub u d))).
  { intros u. rewrite <- bell_step. unfold bell. generalize (ind_range (N u)). intros I.
    split; [apply Rmult_le_pos; [left; apply exp_pos | apply I] |]. unfold k.
    apply Rle_trans with ((exp (c * Rabs (q d) + - (c * (q u - 2 * 0 * b u d + 0 * 0 * q d)))
      + exp (c * Rabs (q d) + - (c * (q u - 2 * (0 + 1) * b u d + (0 + 1) * (0 + 1) * q d)))) * ind (N u));
      [apply Rmult_le_compat_r; [apply I |] | rewrite !exp_plus; right; ring].
    assert (D : t * (1 - t) * q d <= Rabs (q d)).
    { apply Rle_trans with (t * (1 - t) * Rabs (q d)); [apply Rmult_le_compat_l; [nra | apply Rle_abs] |].
      assert (t * (1 - t) <= 1) by nra. generalize (Rabs_pos (q d)). nra. }
    revert D. generalize (q u) (b u d) (q d) (Rabs (q d)). clear - C T. intros a x y z D.
    generalize (exp_pos (c * z + - (c * (a - 2 * 0 * x + 0 * 0 * y)))) (exp_pos (c * z + - (c * (a - 2 * (0 + 1) * x + (0 + 1) * (0 + 1) * y)))).
    intros E0 E1. destruct (Rle_lt_dec 0 (y - 2 * x)).
    - assert (G : 0 <= c * (z - t * (1 - t) * y + t * (y - 2 * x))) by (apply Rmult_le_pos; nra).
      apply Rle_trans with (exp (c * z + - (c * (a - 2 * 0 * x + 0 * 0 * y)))); [apply exp_le; lra | lra].
    - assert (G : 0 <= c * (z - t * (1 - t) * y + (1 - t) * (2 * x - y))) by (apply Rmult_le_pos; nra).
      apply Rle_trans with (exp (c * z + - (c * (a - 2 * (0 + 1) * x + (0 + 1) * (0 + 1) * y)))); [apply exp_le; lra | lra]. }
  assert (P : 0 <= k) by (left; apply exp_pos).
  split; [apply summable_le with (2 := summable_scale P (summable_plus B0 B1)); exact L |].
  eapply Rle_trans; [apply (sum_le L (summable_scale P (summable_plus B0 B1))) |].
  rewrite sum_scale, sum_plus, E1 by auto using summable_plus. lra.
Qed.

Lemma bell_summable c t : 0 < c -> 0 <= t -> summable (bell c t).
Proof.
  intros C T. destruct (nat_above t) as [n L]. revert t T L. induction n as [| n IH]; intros t T L; [simpl in L; apply bell_between; lra |].
  destruct (Rle_lt_dec t 1); [apply bell_between; auto |]. rewrite S_INR in L.
  replace (bell c t) with (fun u => bell c (t - 1) (sub u d)).
  - apply sum_shift, IH; lra.
  - apply functional_extensionality. intros u. rewrite <- bell_step. f_equal. lra.
Qed.

Lemma theta_step t : 0 <= t -> sum (bell 1 (t + 1)) = sum (bell 1 t).
Proof.
  intros T. rewrite <- (proj2 (sum_shift d (@bell_summable 1 t ltac:(lra) T))). apply sum_ext. apply bell_step.
Qed.

(** Sums over pairs n, m by s = n + m and e = n - m, which are of one class. *)
Definition part t k := sum (fun u => bell (/ 2) (2 * t) u * ind (class u = k)).

Lemma part_summable t k : 0 <= t -> summable (fun u => bell (/ 2) (2 * t) u * ind (class u = k)).
Proof. intros T. apply summable_test; [apply bell_summable; lra | intros u; apply ind_range]. Qed.

Lemma theta_parts t t' : 0 <= t -> 0 <= t' -> 0 <= t - t' ->
  summable (fun k => part t k * part t' k) /\ sum (bell 1 (t + t')) * sum (bell 1 (t - t')) = sum (fun k => part t k * part t' k).
Proof.
  intros T T' D. destruct (sum_product (@bell_summable 1 (t + t') ltac:(lra) ltac:(lra)) (@bell_summable 1 (t - t') ltac:(lra) D)) as [P E].
  rewrite <- E. set (F := fun p : V * V => bell (/ 2) (2 * t) (fst p) * bell (/ 2) (2 * t') (snd p) * ind (class (fst p) = class (snd p))).
  set (h := fun p : V * V => (add (fst p) (snd p), sub (fst p) (snd p))).
  assert (Same : forall n m, add n m = add (sub n m) (add m m)) by (intros; now rewrite add_assoc, sub_add).
  assert (Q : forall p, F (h p) = bell 1 (t + t') (fst p) * bell 1 (t - t') (snd p)).
  { intros [n m]. unfold F, h. simpl. rewrite (ind_true (P := class (add n m) = class (sub n m))) by (apply classes; exists m; apply Same).
    unfold bell. rewrite Rmult_1_r.
    replace (ind (N (add n m))) with (ind (N (add n m)) * 1) by lra.
    transitivity (exp (- (/ 2 * (q (add n m) - 2 * (2 * t) * b (add n m) d + 2 * t * (2 * t) * q d)))
      * exp (- (/ 2 * (q (sub n m) - 2 * (2 * t') * b (sub n m) d + 2 * t' * (2 * t') * q d)))
      * (ind (N (add n m)) * ind (N (sub n m)))); [ring |].
    transitivity (exp (- (1 * (q n - 2 * (t + t') * b n d + (t + t') * (t + t') * q d)))
      * exp (- (1 * (q m - 2 * (t - t') * b m d + (t - t') * (t - t') * q d))) * (ind (N n) * ind (N m))); [| ring].
    rewrite <- !exp_plus. f_equal.
    - f_equal. expand. rewrite (b_sym m n). field.
    - transitivity (ind (N (add n m) /\ N (sub n m))); [| transitivity (ind (N n /\ N m))].
      + decide_ind (N (add n m)); decide_ind (N (sub n m)); [rewrite ind_true | rewrite ind_false ..]; tauto || lra.
      + apply ind_iff. split; intros [A B]; [| split; [now apply N_add | now apply N_sub]].
        assert (M : N m) by (apply N_half; replace (add m m) with (sub (add n m) (sub n m)); [now apply N_sub |];
          rewrite (Same n m), add_comm; apply add_sub).
        split; [| exact M]. rewrite <- (sub_add n m). now apply N_add.
      + decide_ind (N n); decide_ind (N m); [rewrite ind_true | rewrite ind_false ..]; tauto || lra. }
  assert (QF : (fun p => F (h p)) = (fun p => bell 1 (t + t') (fst p) * bell 1 (t - t') (snd p))) by (apply functional_extensionality; exact Q).
  rewrite <- QF in *.
  destruct (@sum_injective _ _ h F) as [SF EF]; [| | exact P |].
  - intros [n m] [n' m'] I. unfold h in I. simpl in I. injection I as I1 I2. rewrite (Same n m), (Same n' m'), I2 in I1.
    assert (m = m') as -> by (apply no_order_two; apply add_cancel with (sub n' m'); rewrite add_comm, I1; apply add_comm).
    f_equal. rewrite <- (sub_add n m'), I2. apply sub_add.
  - intros [s e]. destruct (classic (class s = class e)) as [I | I]; [left | right; unfold F; simpl; rewrite (ind_false I); lra].
    destruct (proj1 (classes s e) I) as [m ->]. exists (add e m, m). unfold h. simpl. f_equal; [now rewrite add_assoc | apply add_sub].
  - rewrite <- EF. destruct (sum_fibres (fun p => class (fst p)) SF) as (_ & SK & EK). rewrite <- EK.
    assert (X : (fun k => sum (fun p => F p * ind (class (fst p) = k))) = (fun k => part t k * part t' k)).
    { apply functional_extensionality. intros k. unfold part.
      rewrite <- (proj2 (sum_product (part_summable k T) (part_summable k T'))). apply sum_ext. intros [s e]. unfold F. simpl.
      decide_ind (class s = k); [subst k | lra]. rewrite (ind_iff (P := class s = class e) (Q := class e = class s)) by (split; congruence). lra. }
    rewrite <- X. split; [exact SK | reflexivity].
Qed.

Lemma part_nonneg t k : 0 <= t -> 0 <= part t k.
Proof. intros T. apply sum_nonneg. now apply part_summable. Qed.

Let theta t := sum (bell 1 t).

Lemma theta_doubling t : 0 <= t -> (theta t * theta t) * (theta t * theta t) <= theta (2 * t) * theta 0 * (theta 0 * theta 0).
Proof.
  intros T. destruct (@theta_parts t 0) as [S1 E1]; try lra. destruct (@theta_parts t t) as [S2 E2]; try lra.
  destruct (@theta_parts 0 0) as [S3 E3]; try lra. rewrite Rplus_0_r, Rminus_0_r in E1.
  replace (t + t) with (2 * t) in E2 by lra. replace (t - t) with 0 in E2 by lra.
  rewrite Rplus_0_r, Rminus_0_r in E3. unfold theta. rewrite E1, E2, E3. apply sum_mirror; auto. intros k l.
  generalize (Rle_0_sqr (part t k * part 0 l - part t l * part 0 k)). unfold Rsqr. lra.
Qed.

Lemma theta_positive : 0 < theta 0.
Proof.
  apply Rlt_le_trans with (bell 1 0 zero); [| apply (sum_term zero (@bell_summable 1 0 ltac:(lra) ltac:(lra)))].
  rewrite bell_0, ind_true by exact N_zero. rewrite Rmult_1_r. apply exp_pos.
Qed.

Theorem theta_largest t : 0 <= t -> theta t <= theta 0.
Proof.
  assert (P := theta_positive). set (m := theta 0) in *.
  assert (Unit : forall t, 0 <= t <= 1 -> theta t <= m).
  { set (E := fun r => exists t, 0 <= t <= 1 /\ r = theta t).
    destruct (completeness E) as [M [U L]].
    - exists (2 * exp (1 * Rabs (q d)) * m). intros r (s & T & ->). apply bell_between; lra.
    - exists m, 0. split; [lra | reflexivity].
    - assert (M1 : forall s, 0 <= s <= 1 -> theta s <= M) by (intros s T; apply U; exists s; auto).
      assert (M2 : forall s, 0 <= s <= 1 -> theta (2 * s) <= M).
      { intros s T. destruct (Rle_lt_dec (2 * s) 1); [apply M1; lra |].
        replace (2 * s) with (2 * s - 1 + 1) by lra. unfold theta. rewrite theta_step by lra. apply M1. lra. }
      assert (mM : m <= M) by (apply (M1 0); lra).
      set (k := sqrt (sqrt (m * m * (m * M)))).
      assert (K2 : k * k = sqrt (m * m * (m * M))) by (apply sqrt_sqrt, sqrt_pos).
      assert (K4 : (k * k) * (k * k) = m * m * (m * M)) by (rewrite K2; apply sqrt_sqrt; repeat apply Rmult_le_pos; lra).
      assert (K0 : 0 <= k) by apply sqrt_pos.
      assert (MK : M <= k).
      { apply L. intros r (s & T & ->). generalize (theta_doubling (proj1 T)) (M2 s T). fold m. intros A B.
        assert (A0 : 0 <= theta s) by (apply sum_nonneg, bell_summable; lra).
        destruct (Rle_lt_dec (theta s) k); [assumption |]. exfalso.
        assert (k * k < theta s * theta s) by nra.
        assert ((k * k) * (k * k) < theta s * theta s * (theta s * theta s)) by (apply Rmult_le_0_lt_compat; nra).
        assert (theta (2 * s) * (m * (m * m)) <= M * (m * (m * m))); [| lra].
        apply Rmult_le_compat_r; [repeat apply Rmult_le_pos; lra | exact B]. }
      assert (M <= m).
      { destruct (Rle_lt_dec M m); [assumption |]. exfalso.
        assert (M * M <= k * k) by nra.
        assert (M * M * (M * M) <= (k * k) * (k * k)) by (apply Rmult_le_compat; nra).
        assert (m * m < M * M) by nra. assert (m * M < M * M) by nra.
        assert (m * m * (m * M) < M * M * (M * M)) by (apply Rmult_le_0_lt_compat; nra). lra. }
      intros s T. generalize (M1 s T). lra. }
  intros T. destruct (nat_above t) as [n L]. revert t T L. induction n as [| n IH]; intros t T L; [simpl in L; apply Unit; lra |].
  destruct (Rle_lt_dec t 1); [apply Unit; lra |]. rewrite S_INR in L. replace t with (t - 1 + 1) by lra.
  unfold theta. rewrite theta_step by lra. apply IH; lra.
Qed.
End Theta.

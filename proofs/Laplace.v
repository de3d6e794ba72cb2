(** Integer Laplace noise: independent outputs, each with its own scale.

    An output of scale λ = 1/r has weight e^(-r|u|) on the whole numbers; rates r > 0 are given as a list.
    Proved: the noise has a finite sum ([laplace_summable]); ε is the largest Σ r_i |d_i| over neighbours ([integer_laplace],
    TV Prop 7 for whole numbers), and no smaller number holds ([integer_laplace_exact]); given equalities it is the same
    ε ([laplace_given_equalities], [laplace_given_invariants], TV Lemma 10); given any set that holds the truth it is
    at most twice ([laplace_at_most_twice], TV after Def 9); what exact figures leave open ([laplace_subspace]). *)

From Holdfast Require Export Additive.
Set Implicit Arguments.
Unset Strict Implicit.

(** ** Sums over the whole numbers *)
Fixpoint upto (n : nat) : list Z :=
  match n with O => [0%Z] | S m => Z.of_nat n :: (- Z.of_nat n)%Z :: upto m end.

Lemma upto_in n z : (Z.abs z <= Z.of_nat n)%Z -> In z (upto n).
Proof.
  induction n as [| n IH]; intros H; [left; lia |]. cbn [upto In].
  destruct (Z.eq_dec (Z.abs z) (Z.of_nat (S n))); [| right; right; apply IH; lia].
  destruct (Z.le_gt_cases 0 z); [left | right; left]; lia.
Qed.

Lemma upto_incl (l : list Z) : exists n, incl l (upto n).
Proof.
  cut (exists n, forall z, In z l -> (Z.abs z <= Z.of_nat n)%Z); [intros [n H]; exists n; intros z Hz; apply upto_in; auto |].
  induction l as [| z l [n IH]]; [exists O; intros ? [] |].
  exists (Z.to_nat (Z.abs z) + n)%nat. intros y [<- | Hy]; [| specialize (IH y Hy)]; lia.
Qed.

Lemma summable_Z (f : Z -> R) c : (forall z, 0 <= f z) -> (forall n, lsum f (upto n) <= c) -> summable f.
Proof.
  intros N H. apply (@summable_by _ _ c); auto. intros l D. destruct (upto_incl l) as [n I].
  apply Rle_trans with (lsum f (upto n)); auto using lsum_incl.
Qed.

Definition laplace1 (r : R) (u : Z) := exp (- (r * IZR (Z.abs u))).

Lemma laplace1_summable r : 0 < r -> summable (laplace1 r).
Proof.
  intros P. set (a := exp (- r)). assert (A : 0 < a < 1).
  { split; [apply exp_pos |]. rewrite <- exp_0. apply exp_increasing. lra. }
  assert (W : forall n, laplace1 r (Z.of_nat n) = a ^ n /\ laplace1 r (- Z.of_nat n) = a ^ n).
  { intros n. unfold laplace1. rewrite Z.abs_opp, Z.abs_eq, <- INR_IZR_INZ by lia.
    enough (exp (- (r * INR n)) = a ^ n) by auto. induction n as [| n IH]; [simpl; rewrite Rmult_0_r, Ropp_0; apply exp_0 |].
    rewrite S_INR. simpl. rewrite <- IH. unfold a. rewrite <- exp_plus. f_equal. lra. }
  apply (@summable_Z _ ((1 + a) / (1 - a))); [intros; left; apply exp_pos |]. intros n.
  assert (Q : lsum (laplace1 r) (upto n) = (1 + a - 2 * a * a ^ n) / (1 - a)).
  { induction n as [| n IH].
    - cbn [upto lsum]. change 0%Z with (Z.of_nat 0). rewrite (proj1 (W O)). simpl. field. lra.
    - cbn [upto lsum]. rewrite IH, (proj1 (W (S n))), (proj2 (W (S n))). simpl. field. lra. }
  rewrite Q. unfold Rdiv. apply Rmult_le_compat_r; [left; apply Rinv_0_lt_compat; lra |].
  generalize (pow_le a n (Rlt_le _ _ (proj1 A))). nra.
Qed.

(** ** Vectors: one whole number for each rate *)
Fixpoint vec (rs : list R) : Type := match rs with [] => unit | _ :: rs => (Z * vec rs)%type end.

#[global] Instance group_vec rs : Group (vec rs).
Proof. induction rs; simpl; typeclasses eauto. Defined.

Fixpoint laplace (rs : list R) : vec rs -> R :=
  match rs with [] => fun _ => 1 | r :: rs => fun u => laplace1 r (fst u) * laplace (snd u) end.

(** The weighted size of a change: what it costs. *)
Fixpoint cost (rs : list R) : vec rs -> R :=
  match rs with [] => fun _ => 0 | r :: rs => fun d => r * IZR (Z.abs (fst d)) + cost (snd d) end.

Definition rates (rs : list R) := Forall (fun r => 0 < r) rs.

Lemma laplace_positive rs (u : vec rs) : 0 < laplace u.
Proof. induction rs; simpl; [lra |]. apply Rmult_lt_0_compat; [apply exp_pos | apply IHrs]. Qed.

Lemma laplace_summable rs : rates rs -> summable (@laplace rs).
Proof.
  induction 1 as [| r rs P _ IH]; simpl; [| apply (sum_product (laplace1_summable P) IH)].
  apply (@summable_by _ _ 1); [intros; lra |]. intros l D.
  apply Rle_trans with (lsum (fun _ => 1) [tt]); [| simpl; lra].
  apply lsum_incl; auto; [intros; lra | intros [] _; simpl; auto].
Qed.

Lemma exp_le x y : x <= y -> exp x <= exp y.
Proof. intros [H | ->]; [left; now apply exp_increasing | right; reflexivity]. Qed.

Lemma laplace_ratio rs : rates rs -> forall u d : vec rs, laplace (sub u d) <= exp (cost d) * laplace u.
Proof.
  induction 1 as [| r rs P _ IH]; [intros; simpl; rewrite exp_0; lra |].
  intros [u us] [d ds]. change (laplace1 r (u - d) * laplace (sub us ds) <=
    exp (r * IZR (Z.abs d) + cost ds) * (laplace1 r u * laplace us)). rewrite exp_plus.
  replace (_ * _ * (_ * _)) with ((exp (r * IZR (Z.abs d)) * laplace1 r u) * (exp (cost ds) * laplace us)) by ring.
  apply Rmult_le_compat; [left; apply exp_pos | left; apply laplace_positive | | apply IH].
  unfold laplace1. rewrite <- exp_plus. apply exp_le.
  assert (IZR (Z.abs u) <= IZR (Z.abs (u - d)) + IZR (Z.abs d)); [| nra]. rewrite <- plus_IZR. apply IZR_le. lia.
Qed.

Section Noise.
Context {X : Type} (near : X -> X -> Prop) (rs : list R) (q : X -> vec rs) (eps : R).
Hypothesis R0 : rates rs.
(** The sensitivity: no neighbours differ by more than ε. *)
Hypothesis sensitivity : forall x x', near x x' -> cost (sub (q x) (q x')) <= eps.

Lemma laplace_step x x' : near x x' -> forall u, laplace (sub u (sub (q x) (q x'))) <= exp eps * laplace u.
Proof.
  intros N u. eapply Rle_trans; [now apply laplace_ratio |].
  apply Rmult_le_compat_r; [left; apply laplace_positive | apply exp_le; auto].
Qed.

Lemma laplace_around x x' : near x x' -> forall v, around q (@laplace rs) x v <= exp eps * around q (@laplace rs) x' v.
Proof. intros N v. unfold around. rewrite (sub_sub v (q x) (q x')). now apply laplace_step. Qed.

Theorem integer_laplace : pure near eps (fun x => normal (around q (@laplace rs) x)).
Proof. apply additive_noise; auto using laplace_positive, laplace_summable, laplace_step. Qed.

Theorem laplace_given_equalities {W} `{Group W} (C : vec rs -> W) b : additive C -> (forall x, C (q x) = b) ->
  pure near eps (fun x => given (around q (@laplace rs) x) (fun v => C v = b)).
Proof.
  intros A B. apply given_equalities with (H0 := H); auto using laplace_positive, laplace_step, Rlt_le.
  apply summable_test; [now apply laplace_summable | apply (test_ind (fun u => C u = zero))].
Qed.

Theorem laplace_given_invariants {W} `{Group W} (C : vec rs -> W) : additive C ->
  (forall x x', near x x' -> C (q x) = C (q x')) ->
  pure near eps (fun x => given (around q (@laplace rs) x) (fun v => C v = C (q x))).
Proof.
  intros A B. apply given_invariants with (H0 := H); auto using laplace_positive, laplace_step, Rlt_le.
  apply summable_test; [now apply laplace_summable | apply (test_ind (fun u => C u = zero))].
Qed.

Theorem laplace_at_most_twice (S : vec rs -> Prop) : (forall x x', near x x' -> near x' x) -> (forall x, S (q x)) ->
  pure near (2 * eps) (fun x => given (around q (@laplace rs) x) S).
Proof.
  intros Y T. apply at_most_twice with (S := fun _ => S); auto using laplace_around; try tauto.
  - intros x. now apply around_summable, laplace_summable.
  - intros x. apply mass_positive with (q x); [now apply around_summable, laplace_summable | apply T | apply laplace_positive].
Qed.
End Noise.

(** A change that the largest cost belongs to is told apart by exactly that much, where the output is q(x). *)
Theorem integer_laplace_exact {X} (near : X -> X -> Prop) rs (q : X -> vec rs) eps x x' : rates rs -> near x x' ->
  pure near eps (fun x => normal (around q (@laplace rs) x)) -> cost (sub (q x) (q x')) <= eps.
Proof.
  intros R0 N H. assert (Q : forall y, sum (around q (@laplace rs) y) = sum (@laplace rs))
    by (intros; now apply sum_shift, laplace_summable).
  assert (P : 0 < sum (@laplace rs)).
  { apply Rlt_le_trans with (laplace (zero : vec rs)); [apply laplace_positive | now apply sum_term, laplace_summable]. }
  rewrite pure_pointwise in H by (intros y; apply law_normal; [now apply around_summable, laplace_summable | now rewrite Q]).
  specialize (H x x' N (q x)). unfold normal in H. rewrite !Q in H. unfold around in H. rewrite sub_self in H.
  assert (E : forall d : vec rs, laplace d = exp (- cost d)).
  { clear. induction rs as [| r rs IH]; simpl; intros d; [now rewrite Ropp_0, exp_0 |].
    rewrite IH. unfold laplace1. rewrite <- exp_plus. f_equal. lra. }
  assert (O : laplace (zero : vec rs) = 1).
  { clear. induction rs as [| r rs IH]; simpl; [reflexivity |]. rewrite IH. unfold laplace1. simpl.
    rewrite Rmult_0_r, Ropp_0, exp_0. lra. }
  rewrite O, E in H. apply Rmult_le_compat_r with (r := sum (@laplace rs)) in H; [| lra].
  replace (1 / sum (@laplace rs) * sum (@laplace rs)) with 1 in H by (field; lra).
  replace (exp eps * _ * _) with (exp (eps - cost (sub (q x) (q x')))) in H
    by (unfold Rminus; rewrite exp_plus; field; lra).
  destruct (Rle_lt_dec (cost (sub (q x) (q x'))) eps) as [| L]; [assumption |]. exfalso.
  assert (exp (eps - cost (sub (q x) (q x'))) < exp 0) by (apply exp_increasing; lra). rewrite exp_0 in *. lra.
Qed.

(** What is left by an additive map h: the cheapest whole change e that h does not tell from the true one. *)
Theorem laplace_subspace {X W} `{Group W} (near : X -> X -> Prop) rs (q : X -> vec rs) (h : vec rs -> W) eps :
  rates rs -> additive h ->
  (forall x x', near x x' -> exists e, h e = h (sub (q x) (q x')) /\ cost e <= eps) ->
  pure near eps (fun x => image h (normal (around q (@laplace rs) x))).
Proof.
  intros R0 A D. apply subspace_scope with (H0 := H); auto using laplace_positive, laplace_summable.
  intros x x' N. destruct (D x x' N) as (e & He & C). exists e. split; [exact He |]. intros u.
  eapply Rle_trans; [now apply laplace_ratio |].
  apply Rmult_le_compat_r; [left; apply laplace_positive | now apply exp_le].
Qed.

(** Integer Gaussian noise: ρ for whole shifts and given equalities.

    Noise on a lattice has weight e^(-b(u, u)), b a symmetric bi-additive form (for independent outputs b(u, v) = Σ r_i u_i v_i,
    r_i = 1/2σ_i²), on the u with C u = 0.
    Proved: ρ is the largest b(d, d) over neighbours that share C q(x) ([lattice_gaussian], all real orders, by [theta_largest]
    in place of Poisson summation); independent outputs with σ each have ρ = max Σ d_i²/2σ_i² ([integer_gaussian],
    Canonne–Kamath–Steinke 2020), and given equalities they keep it ([gaussian_given_equalities], [gaussian_given_invariants]). *)

From Holdfast Require Export Theta Renyi.
Set Implicit Arguments.
Unset Strict Implicit.

Section Lattice.
Context {X V W K : Type} `{Group V} `{Group W} (near : X -> X -> Prop) (q : X -> V) (rho : R).
Context (b : V -> V -> R) (C : V -> W) (class : V -> K).
Hypothesis b_sym : forall u v, b u v = b v u.
Hypothesis b_add : forall u v t, b (add u v) t = b u t + b v t.
Hypothesis C_additive : additive C.
Hypothesis W_no_order_two : forall t : W, add t t = zero -> t = zero.
Hypothesis no_order_two : forall u v : V, add u u = add v v -> u = v.
Hypothesis classes : forall u v, class u = class v <-> exists m, u = add v (add m m).
Hypothesis S : forall c, 0 < c -> summable (fun u => exp (- (c * b u u)) * ind (C u = zero)).
Hypothesis shared : forall x x', near x x' -> C (q x) = C (q x').
Hypothesis sensitivity : forall x x', near x x' -> b (sub (q x) (q x')) (sub (q x) (q x')) <= rho.

Definition gaussian_weight u := exp (- b u u).
Let open u := C u = zero.

Lemma open_zero : open zero.
Proof. exact (zero_open C_additive). Qed.

Lemma open_sub u v : open u -> open v -> open (sub u v).
Proof. unfold open. intros U U'. rewrite additive_sub, U, U' by exact C_additive. apply sub_self. Qed.

Lemma open_half u : open (add u u) -> open u.
Proof. unfold open. rewrite C_additive. apply W_no_order_two. Qed.

Lemma weight_open : summable (fun u => gaussian_weight u * ind (open u)).
Proof.
  replace (fun u => gaussian_weight u * ind (open u)) with (fun u => exp (- (1 * b u u)) * ind (C u = zero)); [apply S; lra |].
  apply functional_extensionality. intros u. unfold gaussian_weight. now rewrite Rmult_1_l.
Qed.

Lemma lattice_law x : law (given (around q gaussian_weight x) (fun v => C v = C (q x))).
Proof.
  destruct (normalisers_agree q C_additive weight_open x) as [T Q]. apply (law_normal T). unfold mass in Q. rewrite Q.
  apply Rlt_le_trans with (gaussian_weight zero * ind (open zero)); [rewrite ind_true by exact open_zero; rewrite Rmult_1_r; apply exp_pos |].
  exact (sum_term zero weight_open).
Qed.

Theorem lattice_gaussian : zcdp near rho (fun x => given (around q gaussian_weight x) (fun v => C v = C (q x))).
Proof.
  intros x x' N a A1. set (d := sub (q x) (q x')).
  assert (D : open d) by (unfold open, d; rewrite additive_sub, (shared N) by exact C_additive; apply sub_self).
  assert (Th := @theta_largest V K _ b open class d b_sym b_add open_zero open_sub open_half no_order_two classes S D a ltac:(lra)).
  assert (BS := @bell_summable V _ b open d b_sym b_add open_zero open_sub S D).
  set (m := mass gaussian_weight open).
  assert (M : m = sum (bell b open d 1 0)).
  { apply sum_ext. intros u. rewrite bell_0. unfold gaussian_weight. now rewrite Rmult_1_l. }
  assert (P : 0 < m).
  { apply Rlt_le_trans with (gaussian_weight zero * ind (open zero)); [rewrite ind_true by exact open_zero; rewrite Rmult_1_r; apply exp_pos |].
    exact (sum_term zero weight_open). }
  set (p := given (around q gaussian_weight x) (fun v => C v = C (q x))).
  set (p' := given (around q gaussian_weight x') (fun v => C v = C (q x'))).
  assert (Eq : forall v, p v = gaussian_weight (sub (sub v (q x')) d) * ind (open (sub v (q x'))) / m).
  { intros v. unfold p, given. rewrite (proj2 (normalisers_agree q C_additive weight_open x)). unfold around.
    rewrite (sub_sub v (q x) (q x')), (shared N), (ind_iff (coset q C_additive x' v)). reflexivity. }
  assert (Eq' : forall v, p' v = gaussian_weight (sub v (q x')) * ind (open (sub v (q x'))) / m).
  { intros v. unfold p', given. rewrite (proj2 (normalisers_agree q C_additive weight_open x')). unfold around.
    rewrite (ind_iff (coset q C_additive x' v)). reflexivity. }
  assert (Mo : forall v, moment a p p' v = exp ((a - 1) * (a * b d d)) / m * bell b open d 1 a (sub v (q x'))).
  { intros v. unfold moment. rewrite Eq, Eq'. set (u := sub v (q x')). unfold bell. decide_ind (open u); [| unfold Rdiv; ring].
    rewrite !Rmult_1_r. unfold gaussian_weight.
    replace (exp (- b (sub u d) (sub u d)) / m / (exp (- b u u) / m)) with (exp (- b (sub u d) (sub u d) + b u u)).
    - unfold Rpower. rewrite ln_exp. unfold Rdiv. rewrite !(Rmult_comm _ (/ m)), !Rmult_assoc. f_equal. rewrite <- !exp_plus. f_equal.
      rewrite !(b_sub b_add), !(proj2 (b_right b_sym b_add _ _ _)), (b_sym d u). ring.
    - rewrite exp_plus. replace (exp (b u u)) with (/ exp (- b u u)) by (rewrite exp_Ropp, Rinv_inv; reflexivity).
      field. split; [lra |]. generalize (exp_pos (- b u u)). lra. }
  assert (K0 : 0 <= exp ((a - 1) * (a * b d d)) / m) by (left; apply Rdiv_lt_0_compat; [apply exp_pos | exact P]).
  destruct (sum_shift (q x') (BS 1 a ltac:(lra) ltac:(lra))) as [SB EB].
  assert (Mf : moment a p p' = (fun v => exp ((a - 1) * (a * b d d)) / m * bell b open d 1 a (sub v (q x')))) by (apply functional_extensionality; exact Mo).
  split; [| rewrite Mf; split; [now apply summable_scale |]].
  - intros v. rewrite Eq, Eq'. decide_ind (open (sub v (q x'))); [| unfold Rdiv; lra]. intros _. rewrite Rmult_1_r.
    apply Rdiv_lt_0_compat; [apply exp_pos | exact P].
  - rewrite sum_scale by assumption. rewrite EB. apply Rle_trans with (exp ((a - 1) * (a * b d d)) / m * m).
    + apply Rmult_le_compat_l; [exact K0 |]. rewrite M. exact Th.
    + replace (exp ((a - 1) * (a * b d d)) / m * m) with (exp ((a - 1) * (a * b d d))) by (field; lra). apply exp_le.
      repeat apply Rmult_le_compat_l; try lra. apply sensitivity, N.
Qed.
End Lattice.

(** ** Independent outputs: rates r = 1/2σ² *)
Fixpoint form (rs : list R) : vec rs -> vec rs -> R :=
  match rs with [] => fun _ _ => 0 | r :: rs => fun u v => r * (IZR (fst u) * IZR (fst v)) + form (snd u) (snd v) end.
Fixpoint parity (rs : list R) : vec rs -> list bool :=
  match rs with [] => fun _ => [] | r :: rs => fun u => Z.even (fst u) :: parity (snd u) end.

Lemma form_sym rs (u v : vec rs) : form u v = form v u.
Proof. induction rs; simpl; [reflexivity |]. rewrite IHrs. ring. Qed.

Lemma form_add rs (u v t : vec rs) : form (add u v) t = form u t + form v t.
Proof.
  induction rs as [| r rs IH]; [simpl; lra |]. destruct u as [u us], v as [v vs], t as [t ts].
  change (r * (IZR (u + v) * IZR t) + form (add us vs) ts = r * (IZR u * IZR t) + form us ts + (r * (IZR v * IZR t) + form vs ts)).
  rewrite IH, plus_IZR. ring.
Qed.

Lemma vec_no_order_two rs (u v : vec rs) : add u u = add v v -> u = v.
Proof.
  induction rs as [| r rs IH]; [destruct u, v; reflexivity |]. destruct u as [u us], v as [v vs]. intros E. injection E as E E'.
  f_equal; [lia | apply IH, E'].
Qed.

Lemma parity_classes rs (u v : vec rs) : parity u = parity v <-> exists m, u = add v (add m m).
Proof.
  induction rs as [| r rs IH].
  - destruct u, v. split; [exists tt |]; reflexivity.
  - destruct u as [u us], v as [v vs]. simpl parity. split.
    + intros [= E E']. apply IH in E' as [ms ->]. assert (Z.even (u - v) = true) as Ev.
      { rewrite Z.even_sub, E. destruct (Z.even v); reflexivity. }
      apply Z.even_spec in Ev as [m Hm]. exists (m, ms). change ((u, add vs (add ms ms)) = ((v + (m + m))%Z, add vs (add ms ms))). f_equal. lia.
    + intros [[m ms] E]. change ((u, us) = ((v + (m + m))%Z, add vs (add ms ms))) in E. injection E as -> E. f_equal.
      * rewrite Z.even_add. replace (m + m)%Z with (2 * m)%Z by lia. rewrite Z.even_mul. destruct (Z.even v); reflexivity.
      * apply IH. now exists ms.
Qed.

Lemma gaussian_summable rs c : rates rs -> 0 < c -> summable (fun u : vec rs => exp (- (c * form u u))).
Proof.
  intros R0 C. induction R0 as [| r rs P _ IH].
  - apply (@summable_by _ _ 1); [intros; left; apply exp_pos |]. intros l D.
    apply Rle_trans with (lsum (fun _ => 1) [tt]); [| simpl; lra].
    eapply Rle_trans; [apply lsum_le with (g := fun _ => 1) |].
    + intros a _. simpl. rewrite Rmult_0_r, Ropp_0, exp_0. lra.
    + apply lsum_incl; auto; [intros; lra | intros [] _; simpl; auto].
  - assert (Q : summable (fun u => exp (- (c * (r * (IZR u * IZR u)))))).
    { apply summable_le with (laplace1 (c * r)); [| apply laplace1_summable; nra]. intros u. split; [left; apply exp_pos |].
      unfold laplace1. apply exp_le. assert (IZR (Z.abs u) <= IZR u * IZR u) by (rewrite <- mult_IZR; apply IZR_le; nia).
      assert (0 < c * r) by nra. nra. }
    destruct (sum_product Q IH) as [S _].
    replace (fun u : vec (r :: rs) => exp (- (c * form u u)))
      with (fun p : Z * vec rs => exp (- (c * (r * (IZR (fst p) * IZR (fst p))))) * exp (- (c * form (snd p) (snd p)))); [exact S |].
    apply functional_extensionality. intros [u us]. simpl. rewrite <- exp_plus. f_equal. ring.
Qed.

Section Independent.
Context {X : Type} (near : X -> X -> Prop) (rs : list R) (q : X -> vec rs) (rho : R).
Hypothesis R0 : rates rs.
Hypothesis sensitivity : forall x x', near x x' -> form (sub (q x) (q x')) (sub (q x) (q x')) <= rho.

Theorem gaussian_given_invariants {W} `{Group W} (C : vec rs -> W) :
  additive C -> (forall t : W, add t t = zero -> t = zero) -> (forall x x', near x x' -> C (q x) = C (q x')) ->
  zcdp near rho (fun x => given (around q (gaussian_weight (@form rs)) x) (fun v => C v = C (q x))).
Proof.
  intros A O I. apply lattice_gaussian with (class := @parity rs); auto using form_sym, form_add, vec_no_order_two, parity_classes.
  intros c Cp. apply summable_test; [now apply gaussian_summable | apply (test_ind (fun u => C u = zero))].
Qed.

Theorem gaussian_given_equalities {W} `{Group W} (C : vec rs -> W) b :
  additive C -> (forall t : W, add t t = zero -> t = zero) -> (forall x, C (q x) = b) ->
  zcdp near rho (fun x => given (around q (gaussian_weight (@form rs)) x) (fun v => C v = b)).
Proof.
  intros A O I. assert (G : zcdp near rho (fun x => given (around q (gaussian_weight (@form rs)) x) (fun v => C v = C (q x)))).
  { apply gaussian_given_invariants; auto. intros. now rewrite !I. }
  intros x x' N. specialize (G x x' N). cbv beta in G. now rewrite !I in G.
Qed.

Theorem integer_gaussian : zcdp near rho (fun x => normal (around q (gaussian_weight (@form rs)) x)).
Proof.
  assert (G := @gaussian_given_equalities unit group_unit (fun _ => tt) tt ltac:(intros u v; reflexivity) ltac:(intros []; reflexivity) ltac:(reflexivity)).
  assert (E : forall x, given (around q (gaussian_weight (@form rs)) x) (fun _ => tt = tt) = normal (around q (gaussian_weight (@form rs)) x)).
  { intros x. apply functional_extensionality. intros v. rewrite <- given_all. unfold given, mass.
    rewrite (@ind_iff (tt = tt) True) by tauto. reflexivity. }
  intros x x' N. specialize (G x x' N). cbv beta in G. now rewrite !E in G.
Qed.
End Independent.

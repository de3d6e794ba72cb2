(** What a certificate claims, as a computation on whole numbers that the kernel does.

    A table has outputs with rates n_i / D (1/λ for Laplace noise, 1/2σ² for Gaussian), and every kind of record adds a column
    of whole numbers to them. [rows] are the sums that hold or are published exactly. [changes] lists what one record can
    change: its column, or the difference of two columns. Proved: if the kernel finds that every change has Σ n_i |d_i|
    at most what is claimed and keeps all rows, then the table, drawn given the rows and then moved by any rule that
    may read the exact sums, is private ([laplace_certified], up to k records; [gaussian_certified]); if changes that do not
    keep the rows are left out, it is so between neighbours that share the exact sums ([laplace_sharing], [gaussian_sharing]);
    so it is for up to k records that together keep them, whatever each changes alone ([laplace_several]). The last three
    allow the rule to read exact sums that the noise was not drawn given, if neighbours share these too. *)

From Holdfast Require Export Gaussian.
Set Implicit Arguments.
Unset Strict Implicit.

Fixpoint vector (rs : list R) : list Z -> vec rs :=
  match rs with
  | [] => fun _ => tt
  | _ :: rs => fun c => match c with [] => (0%Z, vector rs []) | z :: c => (z, vector rs c) end
  end.

Definition real_rates (D : positive) (ns : list Z) := map (fun n => IZR n / IZR (Zpos D)) ns.

(** Whole sums. *)
Fixpoint size (f : Z -> Z) (ns c : list Z) : Z :=
  match ns, c with n :: ns, z :: c => (n * f z + size f ns c)%Z | _, _ => 0%Z end.
Fixpoint times (r c : list Z) : Z := match r, c with a :: r, z :: c => (a * z + times r c)%Z | _, _ => 0%Z end.
Fixpoint minus (a b : list Z) : list Z :=
  match a, b with
  | [], _ => map Z.opp b
  | _, [] => a
  | x :: a, y :: b => (x - y)%Z :: minus a b
  end.

(** The sums of rows: an additive map into whole vectors. *)
Fixpoint dot (rs : list R) (r : list Z) : vec rs -> Z :=
  match rs with
  | [] => fun _ => 0%Z
  | _ :: rs => fun v => match r with [] => 0%Z | a :: r => (a * fst v + dot r (snd v))%Z end
  end.
Definition ones (rows : list (list Z)) := map (fun _ => 1) rows.
Fixpoint sums_of (rs : list R) (rows : list (list Z)) (v : vec rs) : vec (ones rows) :=
  match rows with [] => tt | r :: rows => (dot r v, sums_of rows v) end.

Lemma vector_nil rs : vector rs [] = zero.
Proof. induction rs as [| r rs IH]; [reflexivity |]. simpl. now rewrite IH. Qed.

Lemma vector_minus rs a b : vector rs (minus a b) = sub (vector rs a) (vector rs b).
Proof.
  revert a b. induction rs as [| r rs IH]; intros a b; [reflexivity |].
  assert (O : forall b, vector rs (map Z.opp b) = sub zero (vector rs b)).
  { intros c. rewrite <- (vector_nil rs), <- IH. reflexivity. }
  destruct a as [| x a], b as [| y b]; simpl.
  - change ((0%Z, vector rs []) = (0 - 0, sub (vector rs []) (vector rs []))%Z). now rewrite sub_self, vector_nil.
  - change ((- y)%Z :: map Z.opp b) with ((- y)%Z :: map Z.opp b). change (((- y)%Z, vector rs (map Z.opp b)) = ((0 - y)%Z, sub (vector rs []) (vector rs b))).
    now rewrite O, vector_nil.
  - change ((x, vector rs a) = ((x - 0)%Z, sub (vector rs a) (vector rs []))). rewrite <- IH. f_equal; [lia |].
    destruct a; reflexivity.
  - change (((x - y)%Z, vector rs (minus a b)) = ((x - y)%Z, sub (vector rs a) (vector rs b))). now rewrite IH.
Qed.

Lemma dot_additive rs r : additive (@dot rs r).
Proof.
  revert r. induction rs as [| q rs IH]; intros r u v; [reflexivity |]. destruct r as [| a r]; [reflexivity |].
  destruct u as [u us], v as [v vs]. change ((a * (u + v) + dot r (add us vs))%Z = (a * u + dot r us + (a * v + dot r vs))%Z).
  rewrite IH. simpl. lia.
Qed.

Lemma sums_additive rs rows : additive (@sums_of rs rows).
Proof.
  induction rows as [| r rows IH]; intros u v; [reflexivity |]. simpl.
  change ((dot r (add u v), sums_of rows (add u v)) = ((dot r u + dot r v)%Z, add (sums_of rows u) (sums_of rows v))).
  f_equal; [apply dot_additive | apply IH].
Qed.

Lemma dot_vector rs r c : (length c <= length rs)%nat -> dot r (vector rs c) = times r c.
Proof.
  revert r c. induction rs as [| q rs IH]; intros r c L; [destruct c; [destruct r; reflexivity | simpl in L; lia] |].
  destruct r as [| a r]; [reflexivity |]. destruct c as [| z c].
  - change ((a * 0 + dot r (vector rs []))%Z = 0%Z). rewrite IH by (simpl; lia). destruct r; simpl; lia.
  - change ((a * z + dot r (vector rs c))%Z = (a * z + times r c)%Z). rewrite IH by (simpl in L; lia). reflexivity.
Qed.

Lemma cost_vector D ns c : cost (vector (real_rates D ns) c) = IZR (size Z.abs ns c) / IZR (Zpos D).
Proof.
  revert c. induction ns as [| n ns IH]; intros c; [simpl; lra |]. destruct c as [| z c].
  - change (IZR n / IZR (Zpos D) * 0 + cost (vector (real_rates D ns) []) = 0 / IZR (Zpos D)).
    rewrite IH. destruct ns; simpl; lra.
  - change (IZR n / IZR (Zpos D) * IZR (Z.abs z) + cost (vector (real_rates D ns) c) = IZR (n * Z.abs z + size Z.abs ns c) / IZR (Zpos D)).
    rewrite IH, plus_IZR, mult_IZR. unfold Rdiv. ring.
Qed.

Lemma form_vector D ns c : form (vector (real_rates D ns) c) (vector (real_rates D ns) c) = IZR (size (fun z => z * z)%Z ns c) / IZR (Zpos D).
Proof.
  revert c. induction ns as [| n ns IH]; intros c; [simpl; lra |]. destruct c as [| z c].
  - change (IZR n / IZR (Zpos D) * (0 * 0) + form (vector (real_rates D ns) []) (vector (real_rates D ns) []) = 0 / IZR (Zpos D)).
    rewrite IH. destruct ns; simpl; lra.
  - change (IZR n / IZR (Zpos D) * (IZR z * IZR z) + form (vector (real_rates D ns) c) (vector (real_rates D ns) c)
      = IZR (n * (z * z) + size (fun z => z * z)%Z ns c) / IZR (Zpos D)).
    rewrite IH, plus_IZR, !mult_IZR. unfold Rdiv. ring.
Qed.

Lemma cost_opp rs (d : vec rs) : cost (opp d) = cost d.
Proof.
  induction rs as [| r rs IH]; [reflexivity |]. destruct d as [d ds].
  change (r * IZR (Z.abs (- d)) + cost (opp ds) = r * IZR (Z.abs d) + cost ds). now rewrite IH, Z.abs_opp.
Qed.

Lemma form_opp rs (d : vec rs) : form (opp d) (opp d) = form d d.
Proof.
  induction rs as [| r rs IH]; [reflexivity |]. destruct d as [d ds].
  change (r * (IZR (- d) * IZR (- d)) + form (opp ds) (opp ds) = r * (IZR d * IZR d) + form ds ds). rewrite IH, opp_IZR. ring.
Qed.

(** ** Tables of records; a record is the number of its column *)
Section Table.
Variables (D : positive) (ns : list Z) (columns rows : list (list Z)).
Let rs := real_rates D ns.
Definition column j := nth j columns [].
Definition answer (x : list nat) : vec rs := fold_right (fun j v => add (vector rs (column j)) v) zero x.
Definition exactly (v : vec rs) := sums_of rows v.

Definition add_remove (x x' : list nat) := exists a b j, (j < length columns)%nat /\
  ((x = a ++ j :: b /\ x' = a ++ b) \/ (x = a ++ b /\ x' = a ++ j :: b)).
Definition replace_one (x x' : list nat) := exists a b j k, (j < length columns)%nat /\ (k < length columns)%nat /\
  x = a ++ j :: b /\ x' = a ++ k :: b.

Definition differences := flat_map (fun a => map (minus a) columns) columns.

Lemma answer_app a b : answer (a ++ b) = add (answer a) (answer b).
Proof.
  induction a as [| j a IH]; simpl; [now rewrite add_comm, add_zero |]. now rewrite IH, add_assoc.
Qed.

Lemma answer_cons a j b : answer (a ++ j :: b) = add (vector rs (column j)) (answer (a ++ b)).
Proof.
  rewrite !answer_app. simpl. rewrite !add_assoc. f_equal. apply add_comm.
Qed.

Lemma add_remove_change x x' : add_remove x x' -> exists c, In c columns /\
  (sub (answer x) (answer x') = vector rs c \/ sub (answer x) (answer x') = opp (vector rs c)).
Proof.
  intros (a & b & j & L & H). exists (column j). split; [now apply nth_In |].
  destruct H as [[-> ->] | [-> ->]]; rewrite answer_cons; [left; apply add_sub | right].
  apply add_cancel with (add (vector rs (column j)) (answer (a ++ b))). rewrite sub_add, add_assoc, (add_comm (opp _)), add_opp, add_comm, add_zero.
  reflexivity.
Qed.

Lemma replace_one_change x x' : replace_one x x' -> exists c, In c differences /\ sub (answer x) (answer x') = vector rs c.
Proof.
  intros (a & b & j & k & Lj & Lk & -> & ->). exists (minus (column j) (column k)). split.
  - apply in_flat_map. exists (column j). split; [now apply nth_In |]. apply in_map. now apply nth_In.
  - rewrite !answer_cons, vector_minus. apply add_cancel with (add (vector rs (column k)) (answer (a ++ b))).
    rewrite sub_add, add_assoc, sub_add. reflexivity.
Qed.

(** ** What the kernel computes *)
Local Open Scope bool_scope.
Local Open Scope R_scope.
Definition keeps (c : list Z) := forallb (fun r => (times r c =? 0)%Z) rows.
Definition fits (c : list Z) := (length c <=? length ns)%nat.
Definition cheap (f : Z -> Z) (k E F : positive) (c : list Z) := (Zpos F * Zpos k * size f ns c <=? Zpos E * Zpos D)%Z.
Definition checked f k E F changes :=
  forallb (fun n => 0 <? n)%Z ns && forallb (fun c => fits c && (keeps c && cheap f k E F c)) changes.
Definition checked_sharing f E F changes :=
  forallb (fun n => 0 <? n)%Z ns && forallb (fun c => fits c && (negb (keeps c) || cheap f 1 E F c)) changes.

Lemma rates_positive : forallb (fun n => 0 <? n)%Z ns = true -> rates rs.
Proof.
  intros H. unfold rs, rates, real_rates. rewrite Forall_map. apply Forall_forall. intros n I.
  rewrite forallb_forall in H. specialize (H n I). apply Z.ltb_lt in H. apply Rdiv_lt_0_compat; apply IZR_lt; lia.
Qed.

Lemma sums_zero c : fits c = true -> (keeps c = true <-> sums_of rows (vector rs c) = zero).
Proof.
  intros L. apply Nat.leb_le in L. assert (L' : (length c <= length rs)%nat) by (unfold rs, real_rates; now rewrite map_length).
  unfold keeps. clear L. induction rows as [| r rest IH]; [simpl; tauto |]. cbn [forallb sums_of].
  rewrite (dot_vector r L'). rewrite Bool.andb_true_iff, Z.eqb_eq, IH. split.
  - intros [-> ->]. reflexivity.
  - intros Q. injection Q as Q1 Q2. split; [exact Q1 | exact Q2].
Qed.

Variable near : list nat -> list nat -> Prop.
Variable changes : list (list Z).
Hypothesis changed : forall x x', near x x' -> exists c, In c changes /\
  (sub (answer x) (answer x') = vector rs c \/ sub (answer x) (answer x') = opp (vector rs c)).

Lemma sums_opp (v : vec rs) : exactly (opp v) = zero <-> exactly v = zero.
Proof.
  unfold exactly. assert (A := @sums_additive rs rows). assert (Q : add (sums_of rows v) (sums_of rows (opp v)) = zero).
  { rewrite <- A, add_opp. apply (zero_open A). }
  split; intros Z0; rewrite Z0 in Q; [now rewrite add_zero in Q | now rewrite add_comm, add_zero in Q].
Qed.

Lemma shares_sums x x' c : fits c = true -> (sub (answer x) (answer x') = vector rs c \/ sub (answer x) (answer x') = opp (vector rs c)) ->
  (keeps c = true <-> exactly (answer x) = exactly (answer x')).
Proof.
  intros L H. rewrite (sums_zero L). fold (exactly (vector rs c)).
  assert (Q : exactly (sub (answer x) (answer x')) = zero <-> exactly (answer x) = exactly (answer x')).
  { unfold exactly. rewrite (additive_sub _ _ (@sums_additive rs rows)). split; [apply sub_zero_eq | intros ->; apply sub_self]. }
  rewrite <- Q. destruct H as [-> | ->]; [tauto |]. symmetry. apply sums_opp.
Qed.

Lemma claim f k E F c : cheap f k E F c = true -> IZR (size f ns c) / IZR (Zpos D) <= IZR (Zpos E) / (IZR (Zpos F) * IZR (Zpos k)).
Proof.
  unfold cheap. intros H. apply Z.leb_le, IZR_le in H. rewrite !mult_IZR in H.
  assert (P : forall p, 0 < IZR (Zpos p)) by (intros; apply IZR_lt; lia). generalize (P D) (P E) (P F) (P k). intros.
  apply Rmult_le_reg_r with (IZR (Zpos D) * (IZR (Zpos F) * IZR (Zpos k))); [repeat apply Rmult_lt_0_compat; lra |].
  replace (IZR (size f ns c) / IZR (Zpos D) * (IZR (Zpos D) * (IZR (Zpos F) * IZR (Zpos k)))) with (IZR (Zpos F) * IZR (Zpos k) * IZR (size f ns c)) by (field; lra).
  replace (IZR (Zpos E) / (IZR (Zpos F) * IZR (Zpos k)) * (IZR (Zpos D) * (IZR (Zpos F) * IZR (Zpos k)))) with (IZR (Zpos E) * IZR (Zpos D)) by (field; lra). exact H.
Qed.

Definition within (k : positive) (x x' : list nat) := exists i, (i <= Pos.to_nat k)%nat /\ steps near i x x'.
Definition sharing (read : list (list Z)) (x x' : list nat) :=
  near x x' /\ exactly (answer x) = exactly (answer x') /\ sums_of read (answer x) = sums_of read (answer x').

(** The released table: noise given the rows, then any rule that may read the exact sums. *)
Definition reading (read : list (list Z)) {B} (w : vec rs -> R) (rule : vec (ones read) -> vec rs -> B) (x : list nat) :=
  image (rule (sums_of read (answer x))) (given (around answer w x) (fun v => exactly v = exactly (answer x))).
Definition released {B} := @reading rows B.

Lemma laplace_law x : rates rs -> law (given (around answer (@laplace rs) x) (fun v => exactly v = exactly (answer x))).
Proof.
  intros R0. apply law_given; [now apply around_summable, laplace_summable |].
  apply mass_positive with (answer x); [now apply around_summable, laplace_summable | reflexivity | apply laplace_positive].
Qed.

Theorem laplace_sharing read {B} (rule : vec (ones read) -> vec rs -> B) E F : checked_sharing Z.abs E F changes = true ->
  pure (sharing read) (IZR (Zpos E) / IZR (Zpos F)) (reading (@laplace rs) rule).
Proof.
  intros H. apply Bool.andb_true_iff in H as [Hn Hc]. apply rates_positive in Hn. rewrite forallb_forall in Hc.
  apply (@beside_published _ (sharing read) _ _ _ (fun x => given (around answer (@laplace rs) x) (fun v => exactly v = exactly (answer x))) (fun x => sums_of read (answer x)) rule);
    [intros; now apply laplace_law | intros x x' [_ [_ S]]; exact S |].
  refine (@laplace_given_invariants _ _ rs answer _ Hn _ _ (group_vec (ones rows)) exactly (@sums_additive rs rows) _); [| intros x x' [_ [S _]]; exact S].
  intros x x' [N [S _]]. destruct (changed N) as (c & I & Q). specialize (Hc c I).
  apply Bool.andb_true_iff in Hc as [L Hc]. apply Bool.orb_true_iff in Hc as [Hc | Hc].
  - rewrite (proj2 (shares_sums L Q) S) in Hc. discriminate.
  - apply claim in Hc. rewrite Rmult_1_r in Hc. destruct Q as [-> | ->]; rewrite ?cost_opp; unfold rs; rewrite cost_vector; exact Hc.
Qed.

Theorem laplace_certified {B} (rule : vec (ones rows) -> vec rs -> B) k E F : checked Z.abs k E F changes = true ->
  pure (within k) (IZR (Zpos E) / IZR (Zpos F)) (released (@laplace rs) rule).
Proof.
  intros H. apply Bool.andb_true_iff in H as [Hn Hc]. apply rates_positive in Hn. rewrite forallb_forall in Hc.
  assert (S : forall x x', near x x' -> exactly (answer x) = exactly (answer x')).
  { intros x x' N. destruct (changed N) as (c & I & Q). specialize (Hc c I).
    apply Bool.andb_true_iff in Hc as [L Hc]. apply Bool.andb_true_iff in Hc as [Hc _]. now apply (shares_sums L Q). }
  set (eps := IZR (Zpos E) / (IZR (Zpos F) * IZR (Zpos k))).
  assert (G : pure near eps (fun x => given (around answer (@laplace rs) x) (fun v => exactly v = exactly (answer x)))).
  { refine (@laplace_given_invariants _ _ rs answer _ Hn _ _ (group_vec (ones rows)) exactly (@sums_additive rs rows) S).
    intros x x' N. destruct (changed N) as (c & I & Q). specialize (Hc c I).
    apply Bool.andb_true_iff in Hc as [L Hc]. apply Bool.andb_true_iff in Hc as [_ Hc]. apply claim in Hc.
    destruct Q as [-> | ->]; rewrite ?cost_opp; unfold rs; rewrite cost_vector; exact Hc. }
  apply (@beside_published _ (within k) _ _ _ (fun x => given (around answer (@laplace rs) x) (fun v => exactly v = exactly (answer x))) (fun x => exactly (answer x)) rule);
    [intros; now apply laplace_law | |].
  - intros x x' (i & _ & P). induction P as [| i x y z N _ IH]; [reflexivity |]. now rewrite (S x y N).
  - apply pure_pointwise; [intros; now apply laplace_law |]. intros x x' (i & L & P) v.
    assert (Gi := group_privacy_pure (k := i) G). rewrite pure_pointwise in Gi by (intros; now apply laplace_law).
    eapply Rle_trans; [apply (Gi x x' P v) |]. apply Rmult_le_compat_r; [apply (laplace_law x' Hn) |]. apply exp_le.
    assert (Pk : forall p, 0 < IZR (Zpos p)) by (intros; apply IZR_lt; lia).
    assert (INR i <= IZR (Zpos k)) by (rewrite INR_IZR_INZ; apply IZR_le; lia).
    replace (IZR (Zpos E) / IZR (Zpos F)) with (IZR (Zpos k) * eps) by (unfold eps; generalize (Pk F) (Pk k); intros; field; lra).
    apply Rmult_le_compat_r; [| assumption]. left. apply Rdiv_lt_0_compat; [apply Pk | apply Rmult_lt_0_compat; apply Pk].
Qed.

Lemma cost_add qs (d e : vec qs) : rates qs -> cost (add d e) <= cost d + cost e.
Proof.
  intros H. induction H as [| r qs P _ IH]; [simpl; lra |]. destruct d as [d ds], e as [e es].
  change (r * IZR (Z.abs (d + e)) + cost (add ds es) <= r * IZR (Z.abs d) + cost ds + (r * IZR (Z.abs e) + cost es)).
  assert (IZR (Z.abs (d + e)) <= IZR (Z.abs d) + IZR (Z.abs e)) by (rewrite <- plus_IZR; apply IZR_le; lia).
  specialize (IH ds es). nra.
Qed.

Definition checked_several f k E F :=
  forallb (fun n => 0 <? n)%Z ns && forallb (fun c => fits c && cheap f k E F c) changes.
Definition together (read : list (list Z)) (k : positive) (x x' : list nat) :=
  within k x x' /\ exactly (answer x) = exactly (answer x') /\ sums_of read (answer x) = sums_of read (answer x').

Theorem laplace_several read {B} (rule : vec (ones read) -> vec rs -> B) k E F : checked_several Z.abs k E F = true ->
  pure (together read k) (IZR (Zpos E) / IZR (Zpos F)) (reading (@laplace rs) rule).
Proof.
  intros H. apply Bool.andb_true_iff in H as [Hn Hc]. apply rates_positive in Hn. rewrite forallb_forall in Hc.
  apply (@beside_published _ (together read k) _ _ _ (fun x => given (around answer (@laplace rs) x) (fun v => exactly v = exactly (answer x))) (fun x => sums_of read (answer x)) rule);
    [intros; now apply laplace_law | intros x x' [_ [_ S]]; exact S |].
  refine (@laplace_given_invariants _ _ rs answer _ Hn _ _ (group_vec (ones rows)) exactly (@sums_additive rs rows) _); [| intros x x' [_ [S _]]; exact S].
  set (eps := IZR (Zpos E) / (IZR (Zpos F) * IZR (Zpos k))).
  assert (Pk : forall p, 0 < IZR (Zpos p)) by (intros; apply IZR_lt; lia).
  assert (E0 : 0 <= eps) by (left; apply Rdiv_lt_0_compat; [apply Pk | apply Rmult_lt_0_compat; apply Pk]).
  assert (G : forall i x x', steps near i x x' -> cost (sub (answer x) (answer x')) <= INR i * eps).
  { intros i x x' P. induction P as [x | i x y z N _ IH].
    - rewrite sub_self, <- vector_nil. unfold rs. rewrite cost_vector. assert (size Z.abs ns [] = 0%Z) as -> by (case ns; reflexivity). simpl. lra.
    - replace (sub (answer x) (answer z)) with (add (sub (answer x) (answer y)) (sub (answer y) (answer z))).
      + eapply Rle_trans; [now apply cost_add |]. rewrite S_INR. assert (cost (sub (answer x) (answer y)) <= eps); [| lra].
        destruct (changed N) as (c & I & Q). specialize (Hc c I). apply Bool.andb_true_iff in Hc as [_ Hc]. apply claim in Hc.
        destruct Q as [-> | ->]; rewrite ?cost_opp; unfold rs; rewrite cost_vector; exact Hc.
      + apply add_cancel with (answer z). rewrite <- add_assoc, !sub_add. reflexivity. }
  intros x x' [(i & L & P) _]. eapply Rle_trans; [apply (G i x x' P) |].
  assert (INR i <= IZR (Zpos k)) by (rewrite INR_IZR_INZ; apply IZR_le; lia).
  replace (IZR (Zpos E) / IZR (Zpos F)) with (IZR (Zpos k) * eps) by (unfold eps; generalize (Pk F) (Pk k); intros; field; lra).
  now apply Rmult_le_compat_r.
Qed.

Lemma ones_no_order_two (t : vec (ones rows)) : add t t = zero -> t = zero.
Proof.
  intros Q. apply vec_no_order_two. rewrite Q. now rewrite add_zero.
Qed.

Lemma gaussian_law x : rates rs -> law (given (around answer (gaussian_weight (@form rs)) x) (fun v => exactly v = exactly (answer x))).
Proof.
  intros R0. assert (S : summable (gaussian_weight (@form rs))).
  { replace (gaussian_weight (@form rs)) with (fun u : vec rs => exp (- (1 * form u u))); [apply gaussian_summable; auto; lra |].
    apply functional_extensionality. intros u. unfold gaussian_weight. now rewrite Rmult_1_l. }
  apply law_given; [now apply around_summable |].
  apply mass_positive with (answer x); [now apply around_summable | reflexivity | apply exp_pos].
Qed.

Theorem gaussian_sharing read {B} (rule : vec (ones read) -> vec rs -> B) E F : checked_sharing (fun z => z * z)%Z E F changes = true ->
  zcdp (sharing read) (IZR (Zpos E) / IZR (Zpos F)) (reading (gaussian_weight (@form rs)) rule).
Proof.
  intros H. apply Bool.andb_true_iff in H as [Hn Hc]. apply rates_positive in Hn. rewrite forallb_forall in Hc.
  apply (@zcdp_beside_published _ (sharing read) _ _ _ (fun x => given (around answer (gaussian_weight (@form rs)) x) (fun v => exactly v = exactly (answer x))) (fun x => sums_of read (answer x)) rule);
    [intros; now apply gaussian_law | intros x x' [_ [_ S]]; exact S |].
  refine (@gaussian_given_invariants _ _ rs answer _ Hn _ _ (group_vec (ones rows)) exactly (@sums_additive rs rows) ones_no_order_two _); [| intros x x' [_ [S _]]; exact S].
  intros x x' [N [S _]]. destruct (changed N) as (c & I & Q). specialize (Hc c I).
  apply Bool.andb_true_iff in Hc as [L Hc]. apply Bool.orb_true_iff in Hc as [Hc | Hc].
  - rewrite (proj2 (shares_sums L Q) S) in Hc. discriminate.
  - apply claim in Hc. rewrite Rmult_1_r in Hc. destruct Q as [-> | ->]; rewrite ?form_opp; unfold rs; rewrite form_vector; exact Hc.
Qed.

Theorem gaussian_certified {B} (rule : vec (ones rows) -> vec rs -> B) E F : checked (fun z => z * z)%Z 1 E F changes = true ->
  zcdp near (IZR (Zpos E) / IZR (Zpos F)) (released (gaussian_weight (@form rs)) rule).
Proof.
  intros H. assert (H' : checked_sharing (fun z => z * z)%Z E F changes = true).
  { apply Bool.andb_true_iff in H as [Hn Hc]. apply Bool.andb_true_iff. split; [exact Hn |].
    rewrite forallb_forall in *. intros c I. specialize (Hc c I). apply Bool.andb_true_iff in Hc as [L Hc].
    apply Bool.andb_true_iff in Hc as [_ Hc]. now rewrite L, Hc, Bool.orb_true_r. }
  intros x x' N. apply (@gaussian_sharing rows B rule E F H'). split; [exact N |]. enough (S : exactly (answer x) = exactly (answer x')) by (split; exact S). destruct (changed N) as (c & I & Q).
  apply Bool.andb_true_iff in H as [_ Hc]. rewrite forallb_forall in Hc. specialize (Hc c I).
  apply Bool.andb_true_iff in Hc as [L Hc]. apply Bool.andb_true_iff in Hc as [Hc _]. now apply (shares_sums L Q).
Qed.
End Table.

(** The two relations of neighbours. *)
Lemma replace_one_changed D ns columns x x' : replace_one columns x x' -> exists c, In c (differences columns) /\
  (sub (answer D ns columns x) (answer D ns columns x') = vector (real_rates D ns) c \/
   sub (answer D ns columns x) (answer D ns columns x') = opp (vector (real_rates D ns) c)).
Proof. intros H. destruct (@replace_one_change D ns columns x x' H) as (c & I & Q). eauto. Qed.

(** Columns and rows by the places of their entries. *)
Definition line (n : nat) (places : list (Z * Z)) : list Z :=
  map (fun i => fold_right (fun p z => if (fst p =? Z.of_nat i)%Z then (snd p + z)%Z else z) 0%Z places) (seq 0 n).

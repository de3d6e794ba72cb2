(** What a certificate claims, as a computation on whole numbers that the kernel does.

    A table has outputs with rates n_i / D (1/λ for Laplace noise, 1/2σ² for Gaussian), and every kind of record adds a column
    of whole numbers to them. [rows] are sums that the noise is drawn given, [read] sums that whatever is made of the draw may
    read. What one record can change is its column, or the difference of two columns.
    Proved: if the kernel finds ([checked]) that every change keeps all these sums and has Σ n_i |d_i| (Gaussian: Σ n_i d_i²) at
    most what is claimed for one of k records (k² for Gaussian noise), then the table, drawn given the rows and moved by any
    rule that may read the sums, is private for up to k records ([certified]). Where [all] is false it is so for neighbours that
    share the sums: a single change that does not keep them is left out, and k records may keep them together.
    For tables of any size, by their structure: if a record counts in at most one figure of every level or margin (and in the only
    one where there is one), the kernel adds up the rates of the levels alone ([affordable]), and the same holds for any sums that every record keeps ([structured]). *)

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

(** ** The two laws *)
Inductive noise := laplacian | gaussian.
Definition magnitude n z := match n with laplacian => Z.abs z | gaussian => (z * z)%Z end.
Definition power n (k : positive) := match n with laplacian => k | gaussian => (k * k)%positive end.
Definition loss n rs (d : vec rs) := match n with laplacian => cost d | gaussian => form d d end.
Definition weighed n rs : vec rs -> R := match n with laplacian => @laplace rs | gaussian => gaussian_weight (@form rs) end.
Definition holds {X A} n (near : X -> X -> Prop) eps (M : X -> A -> R) :=
  match n with laplacian => pure near eps M | gaussian => zcdp near eps M end.

Lemma loss_vector n D ns c : loss n (vector (real_rates D ns) c) = IZR (size (magnitude n) ns c) / IZR (Zpos D).
Proof. destruct n; [apply cost_vector | apply form_vector]. Qed.

Lemma loss_opp n rs (d : vec rs) : loss n (opp d) = loss n d.
Proof.
  induction rs as [| r rs IH]; [destruct n; reflexivity |]. destruct d as [d ds]. specialize (IH ds). destruct n.
  - change (r * IZR (Z.abs (- d)) + cost (opp ds) = r * IZR (Z.abs d) + cost ds). simpl in IH. now rewrite IH, Z.abs_opp.
  - change (r * (IZR (- d) * IZR (- d)) + form (opp ds) (opp ds) = r * (IZR d * IZR d) + form ds ds). simpl in IH. rewrite IH, opp_IZR. ring.
Qed.

(** m + 1 changes cost at most m + 1 times one, (m + 1)² times for Gaussian noise. *)
Lemma loss_add n rs (d e : vec rs) m s : rates rs -> 0 < m -> loss n d <= s ->
  loss n e <= match n with laplacian => m | gaussian => m * m end * s ->
  loss n (add d e) <= match n with laplacian => m + 1 | gaussian => (m + 1) * (m + 1) end * s.
Proof.
  intros R0 M. destruct n; simpl; intros A B.
  - enough (cost (add d e) <= cost d + cost e) by lra. clear A B. induction R0 as [| r qs P _ IH]; [simpl; lra |].
    destruct d as [d ds], e as [e es].
    change (r * IZR (Z.abs (d + e)) + cost (add ds es) <= r * IZR (Z.abs d) + cost ds + (r * IZR (Z.abs e) + cost es)).
    assert (IZR (Z.abs (d + e)) <= IZR (Z.abs d) + IZR (Z.abs e)) by (rewrite <- plus_IZR; apply IZR_le; lia).
    specialize (IH ds es). nra.
  - enough (m * form (add d e) (add d e) <= m * (m + 1) * form d d + (m + 1) * form e e).
    { apply Rmult_le_reg_l with m; [exact M |].
      assert (m * (m + 1) * form d d <= m * (m + 1) * s) by (apply Rmult_le_compat_l; nra).
      assert ((m + 1) * form e e <= (m + 1) * (m * m * s)) by (apply Rmult_le_compat_l; lra). nra. }
    clear A B. induction R0 as [| r qs P _ IH]; [simpl; lra |]. destruct d as [d ds], e as [e es].
    change (m * (r * (IZR (d + e) * IZR (d + e)) + form (add ds es) (add ds es))
      <= m * (m + 1) * (r * (IZR d * IZR d) + form ds ds) + (m + 1) * (r * (IZR e * IZR e) + form es es)).
    specialize (IH ds es). rewrite plus_IZR.
    assert (0 <= r * ((m * IZR d - IZR e) * (m * IZR d - IZR e))) by (apply Rmult_le_pos; [lra | apply Rle_0_sqr]). lra.
Qed.

Local Open Scope bool_scope.
Local Open Scope R_scope.

(** ** Tables of records, each of an allowed kind *)
Section Table.
Variables (D : positive) (ns : list Z) (K : Type) (column : K -> list Z) (allowed : K -> Prop).
Let rs := real_rates D ns.
Definition answer (x : list K) : vec rs := fold_right (fun j v => add (vector rs (column j)) v) zero x.

Definition add_remove (x x' : list K) := exists a b j, allowed j /\
  ((x = a ++ j :: b /\ x' = a ++ b) \/ (x = a ++ b /\ x' = a ++ j :: b)).
Definition replace_one (x x' : list K) := exists a b j k, allowed j /\ allowed k /\ x = a ++ j :: b /\ x' = a ++ k :: b.
Definition near (replaced : bool) := if replaced then replace_one else add_remove.
(** What one record changes. *)
Definition change (replaced : bool) c := exists j, allowed j /\
  if replaced then exists k, allowed k /\ c = minus (column j) (column k) else c = column j.

Lemma answer_cons a j b : answer (a ++ j :: b) = add (vector rs (column j)) (answer (a ++ b)).
Proof.
  induction a as [| i a IH]; [reflexivity |]. simpl. rewrite IH, !add_assoc. f_equal. apply add_comm.
Qed.

Lemma changed replaced x x' : near replaced x x' -> exists c, change replaced c /\
  (sub (answer x) (answer x') = vector rs c \/ sub (answer x) (answer x') = opp (vector rs c)).
Proof.
  destruct replaced.
  - intros (a & b & j & k & Lj & Lk & -> & ->). exists (minus (column j) (column k)). split; [exists j; eauto | left].
    rewrite !answer_cons, vector_minus. apply add_cancel with (add (vector rs (column k)) (answer (a ++ b))).
    rewrite sub_add, add_assoc, sub_add. reflexivity.
  - intros (a & b & j & L & H). exists (column j). split; [exists j; auto |].
    destruct H as [[-> ->] | [-> ->]]; rewrite answer_cons; [left; apply add_sub | right].
    apply add_cancel with (add (vector rs (column j)) (answer (a ++ b))). rewrite sub_add, add_assoc, (add_comm (opp _)), add_opp, add_comm, add_zero.
    reflexivity.
Qed.

Variables (rows read : list (list Z)) (replaced all : bool) (k : positive) (n : noise) (E F : positive).
Definition keeps (sums : list (list Z)) (c : list Z) := forallb (fun r => (times r c =? 0)%Z) sums.
Definition fits (c : list Z) := (length c <=? length ns)%nat.
Definition cheap (c : list Z) := (Zpos F * Zpos (power n k) * size (magnitude n) ns c <=? Zpos E * Zpos D)%Z.
Definition sound c := fits c && (if all then keeps rows c && keeps read c && cheap c
  else cheap c || ((k =? 1)%positive && negb (keeps rows c && keeps read c))).

Definition shared x x' := sums_of rows (answer x) = sums_of rows (answer x') /\ sums_of read (answer x) = sums_of read (answer x').
Definition within (x x' : list K) := exists i, (i <= Pos.to_nat k)%nat /\ steps (near replaced) i x x'.
(** Up to k records are others; where [all] is false, no sum is. *)
Definition neighbours x x' := within x x' /\ (all = true \/ shared x x').
(** The released table: noise given the rows, then any rule that may read the exact sums. *)
Definition released {B} (rule : vec (ones read) -> vec rs -> B) (x : list K) :=
  image (rule (sums_of read (answer x))) (given (around answer (@weighed n rs) x) (fun v => sums_of rows v = sums_of rows (answer x))).

Hypothesis positive_rates : forallb (fun r => 0 <? r)%Z ns = true.
Hypothesis H : forall c, change replaced c -> sound c = true.

Lemma rates_positive : rates rs.
Proof.
  unfold rs, rates, real_rates. rewrite Forall_map. apply Forall_forall. intros r I.
  rewrite forallb_forall in positive_rates. specialize (positive_rates r I). apply Z.ltb_lt in positive_rates.
  apply Rdiv_lt_0_compat; apply IZR_lt; lia.
Qed.

Lemma keeps_shared sums x x' c : fits c = true ->
  (sub (answer x) (answer x') = vector rs c \/ sub (answer x) (answer x') = opp (vector rs c)) ->
  (keeps sums c = true <-> sums_of sums (answer x) = sums_of sums (answer x')).
Proof.
  intros L Q. assert (A := @sums_additive rs sums).
  assert (Z0 : keeps sums c = true <-> sums_of sums (vector rs c) = zero).
  { apply Nat.leb_le in L. assert (L' : (length c <= length rs)%nat) by (unfold rs, real_rates; now rewrite map_length).
    unfold keeps. clear - L'. induction sums as [| r rest IH]; [simpl; tauto |]. cbn [forallb sums_of].
    rewrite (dot_vector r L'). rewrite Bool.andb_true_iff, Z.eqb_eq, IH. split.
    - intros [-> ->]. reflexivity.
    - intros Q. injection Q as Q1 Q2. split; [exact Q1 | exact Q2]. }
  assert (O : forall v : vec rs, sums_of sums (opp v) = zero <-> sums_of sums v = zero).
  { intros v. assert (T : add (sums_of sums v) (sums_of sums (opp v)) = zero) by (rewrite <- A, add_opp; apply (zero_open A)).
    split; intros Z1; rewrite Z1 in T; [now rewrite add_zero in T | now rewrite add_comm, add_zero in T]. }
  assert (T : sums_of sums (sub (answer x) (answer x')) = zero <-> sums_of sums (answer x) = sums_of sums (answer x')).
  { rewrite (additive_sub _ _ A). split; [apply sub_zero_eq | intros ->; apply sub_self]. }
  rewrite <- T, Z0. destruct Q as [-> | ->]; [tauto |]. symmetry. apply O.
Qed.

Let one := IZR (Zpos E) / (IZR (Zpos F) * IZR (Zpos (power n k))).
Let positive p : 0 < IZR (Zpos p).
Proof. apply IZR_lt. lia. Qed.

Lemma step_facts x x' : near replaced x x' ->
  (all = true -> shared x x') /\ (loss n (sub (answer x) (answer x')) <= one \/ (k = 1%positive /\ ~ shared x x')).
Proof.
  intros N. destruct (changed N) as (c & I & Q). apply H, Bool.andb_true_iff in I as [L Hc]. assert (Ks := fun sums => keeps_shared sums L Q).
  assert (C : cheap c = true -> loss n (sub (answer x) (answer x')) <= one).
  { intros C. replace (loss n (sub (answer x) (answer x'))) with (IZR (size (magnitude n) ns c) / IZR (Zpos D))
      by (destruct Q as [-> | ->]; rewrite ?loss_opp; unfold rs; now rewrite loss_vector).
    apply Z.leb_le, IZR_le in C. rewrite !mult_IZR in C. generalize (positive D) (positive E) (positive F) (positive (power n k)). intros.
    unfold one. apply Rmult_le_reg_r with (IZR (Zpos D) * (IZR (Zpos F) * IZR (Zpos (power n k)))); [repeat apply Rmult_lt_0_compat; lra |].
    replace (IZR (size (magnitude n) ns c) / IZR (Zpos D) * (IZR (Zpos D) * (IZR (Zpos F) * IZR (Zpos (power n k)))))
      with (IZR (Zpos F) * IZR (Zpos (power n k)) * IZR (size (magnitude n) ns c)) by (field; lra).
    replace (IZR (Zpos E) / (IZR (Zpos F) * IZR (Zpos (power n k))) * (IZR (Zpos D) * (IZR (Zpos F) * IZR (Zpos (power n k)))))
      with (IZR (Zpos E) * IZR (Zpos D)) by (field; lra). exact C. }
  unfold shared. rewrite <- !Ks. destruct all.
  - rewrite !Bool.andb_true_iff in Hc. tauto.
  - split; [discriminate |]. apply Bool.orb_true_iff in Hc as [Hc | Hc]; [left; auto | right].
    apply Bool.andb_true_iff in Hc as [Hk Hc]. apply Pos.eqb_eq in Hk. split; [exact Hk |].
    rewrite <- Bool.andb_true_iff. now destruct (keeps rows c && keeps read c).
Qed.

Lemma neighbours_shared x x' : neighbours x x' -> shared x x'.
Proof.
  intros [(i & _ & P) [A | S]]; [| exact S]. induction P as [| i x y z N _ IH]; [split; reflexivity |].
  destruct (proj1 (step_facts N) A), IH. split; congruence.
Qed.

Lemma neighbours_loss x x' : neighbours x x' -> loss n (sub (answer x) (answer x')) <= IZR (Zpos E) / IZR (Zpos F).
Proof.
  intros N. assert (S := neighbours_shared N). destruct N as [(i & L & P) _]. generalize (positive E) (positive F) (positive (power n k)). intros PE PF PP.
  assert (O : 0 < one) by (apply Rdiv_lt_0_compat; [exact PE | now apply Rmult_lt_0_compat]).
  assert (W : IZR (Zpos (power n k)) * one = IZR (Zpos E) / IZR (Zpos F)) by (unfold one; field; lra).
  assert (Zero : forall y, loss n (sub (answer y) (answer y)) = 0).
  { intros y. rewrite sub_self, <- vector_nil. unfold rs. rewrite loss_vector.
    assert (size (magnitude n) ns [] = 0%Z) as -> by (case ns; reflexivity). unfold Rdiv. ring. }
  assert (Kp : 1 <= IZR (Zpos (power n k))) by (apply IZR_le; lia).
  destruct P as [y | i x y z N P]; [rewrite Zero; left; now apply Rdiv_lt_0_compat |].
  assert (G : forall m u t, steps (near replaced) (Datatypes.S m) u t -> (forall x x', near replaced x x' -> loss n (sub (answer x) (answer x')) <= one) ->
    loss n (sub (answer u) (answer t)) <= match n with laplacian => INR (Datatypes.S m) | gaussian => INR (Datatypes.S m) * INR (Datatypes.S m) end * one).
  { induction m as [| m IH]; intros u t P' C; inversion P' as [| ? ? v ? N' Q]; subst.
    - inversion Q; subst. specialize (C _ _ N'). destruct n; simpl in *; lra.
    - rewrite (S_INR (Datatypes.S m)). replace (sub (answer u) (answer t)) with (add (sub (answer u) (answer v)) (sub (answer v) (answer t)))
        by (apply add_cancel with (answer t); rewrite <- add_assoc, !sub_add; reflexivity).
      apply loss_add; [exact rates_positive | apply lt_0_INR; lia | exact (C _ _ N') | exact (IH _ _ Q C)]. }
  destruct (classic (forall x x', near replaced x x' -> loss n (sub (answer x) (answer x')) <= one)) as [C | C].
  - eapply Rle_trans; [apply (G i x z); [now apply step with y | exact C] |]. rewrite <- W. apply Rmult_le_compat_r; [lra |].
    assert (B : INR (Datatypes.S i) <= IZR (Zpos k)) by (rewrite INR_IZR_INZ; apply IZR_le; lia).
    destruct n; simpl power; [exact B |]. rewrite Pos2Z.inj_mul, mult_IZR. generalize (pos_INR (Datatypes.S i)). nra.
  - assert (k = 1%positive) as K1.
    { destruct (classic (k = 1%positive)) as [Q | Q]; [exact Q |]. destruct C. intros u v M. destruct (proj2 (step_facts M)) as [? | [? _]]; tauto. }
    assert (i = 0)%nat as -> by (rewrite K1 in L; simpl in L; lia). inversion P; subst.
    destruct (proj2 (step_facts N)) as [Q | [_ Q]]; [| contradiction]. rewrite <- W. nra.
Qed.

Theorem certified_by {B} (rule : vec (ones read) -> vec rs -> B) : holds n neighbours (IZR (Zpos E) / IZR (Zpos F)) (released rule).
Proof.
  assert (P := rates_positive). set (M x := given (around answer (@weighed n rs) x) (fun v => sums_of rows v = sums_of rows (answer x))).
  assert (S : summable (@weighed n rs)).
  { destruct n; [now apply laplace_summable |]. replace (weighed gaussian (rs := rs)) with (fun u : vec rs => exp (- (1 * form u u))); [apply gaussian_summable; auto; lra |].
    apply functional_extensionality. intros u. unfold weighed, gaussian_weight. now rewrite Rmult_1_l. }
  assert (L : forall x, law (M x)).
  { intros x. apply law_given; [now apply around_summable |].
    apply mass_positive with (answer x); [now apply around_summable | reflexivity |]. destruct n; [apply laplace_positive | apply exp_pos]. }
  assert (R1 : forall x x', neighbours x x' -> sums_of rows (answer x) = sums_of rows (answer x')) by (intros; now apply neighbours_shared).
  assert (R2 : forall x x', neighbours x x' -> sums_of read (answer x) = sums_of read (answer x')) by (intros; now apply neighbours_shared).
  assert (C := neighbours_loss). change (holds n neighbours (IZR (Zpos E) / IZR (Zpos F)) (fun x => image (rule (sums_of read (answer x))) (M x))).
  destruct n; unfold holds.
  - apply (@beside_published _ neighbours _ _ _ M (fun x => sums_of read (answer x)) rule); [exact L | exact R2 |].
    refine (@laplace_given_invariants _ _ rs answer _ P C _ (group_vec (ones rows)) (@sums_of rs rows) (@sums_additive rs rows) R1).
  - apply (@zcdp_beside_published _ neighbours _ _ _ M (fun x => sums_of read (answer x)) rule); [exact L | exact R2 |].
    refine (@gaussian_given_invariants _ _ rs answer _ P C _ (group_vec (ones rows)) (@sums_of rs rows) (@sums_additive rs rows) _ R1).
    intros t Q. apply vec_no_order_two. rewrite Q. now rewrite add_zero.
Qed.
End Table.

(** ** What the kernel computes: for columns that are listed *)
Section Listed.
Variables (D : positive) (ns : list Z) (columns rows read : list (list Z)) (replaced all : bool) (k : positive) (n : noise).
Definition listed (j : nat) := nth j columns [].
Definition among (j : nat) := (j < length columns)%nat.
Definition checked E F := forallb (fun r => 0 <? r)%Z ns && forallb (sound D ns rows read all k n E F)
  (if replaced then flat_map (fun a => map (minus a) columns) columns else columns).

Theorem certified {B} (rule : vec (ones read) -> vec (real_rates D ns) -> B) E F : checked E F = true ->
  holds n (neighbours D ns listed among rows read replaced all k) (IZR (Zpos E) / IZR (Zpos F)) (released listed rows n rule).
Proof.
  intros H. apply Bool.andb_true_iff in H as [P H]. rewrite forallb_forall in H. apply certified_by; [exact P |].
  intros c (j & J & C). apply H. destruct replaced; [| subst; now apply nth_In].
  destruct C as (i & I & ->). apply in_flat_map. exists (listed j). split; [now apply nth_In |]. apply in_map. now apply nth_In.
Qed.
End Listed.

(** ** For tables of any size, by their structure: a record counts in at most one figure of every level *)
Section Structured.
Variables (D : positive) (levels : list (N * Z)) (kind : list nat -> Prop) (rows read : list (list Z)).
Variables (replaced : bool) (k : positive) (n : noise).
Definition rates_of (ls : list (N * Z)) := flat_map (fun l => repeat (snd l) (N.to_nat (fst l))) ls.
(** 1 at one place, or nowhere; a level of one figure counts every record. *)
Definition mark (m i : nat) := if (m =? 1)%nat then [1%Z] else map (fun j => if (j =? i)%nat then 1%Z else 0%Z) (seq 0 m).
Fixpoint marks (ls : list (N * Z)) (r : list nat) : list Z :=
  match ls with [] => [] | l :: ls => mark (N.to_nat (fst l)) (hd 0%nat r) ++ marks ls (tl r) end.
Definition price (l : N * Z) := (if replaced then if (N.to_nat (fst l) =? 1)%nat then 0 else 2 * snd l else snd l)%Z.
Definition total := fold_right (fun l z => (price l + z)%Z) 0%Z.
Definition affordable E F := forallb (fun l => 0 <? snd l)%Z levels &&
  (Zpos F * Zpos (power n k) * total levels <=? Zpos E * Zpos D)%Z.

Lemma size_app f a b c d : length a = length c -> size f (a ++ b) (c ++ d) = (size f a c + size f b d)%Z.
Proof.
  revert c. induction a as [| x a IH]; intros [| y c] L; simpl in *; try lia. rewrite IH by lia. lia.
Qed.

Lemma mark_length m i : length (mark m i) = m.
Proof. unfold mark. destruct (Nat.eqb_spec m 1) as [-> |]; [reflexivity |]. now rewrite map_length, seq_length. Qed.

Lemma mark_bits m i : Forall (fun z => z = 0%Z \/ z = 1%Z) (mark m i).
Proof.
  unfold mark. destruct (m =? 1)%nat; [constructor; [now right | constructor] |]. apply Forall_map, Forall_forall. intros j _. destruct (j =? i)%nat; auto.
Qed.

Lemma size_mark r m i : (0 <= r)%Z -> (size (magnitude n) (repeat r m) (mark m i) <= r)%Z.
Proof.
  intros R0. unfold mark. destruct (Nat.eqb_spec m 1) as [-> | _]; [destruct n; simpl; lia |].
  enough (G : forall s, (size (magnitude n) (repeat r m) (map (fun j => if (j =? i)%nat then 1%Z else 0%Z) (seq s m))
      <= if (s <=? i)%nat then r else 0)%Z).
  { specialize (G 0%nat). simpl in G. exact G. }
  induction m as [| m IH]; intros s; simpl; [destruct (s <=? i)%nat; lia |]. specialize (IH (Datatypes.S s)).
  destruct (Nat.eqb_spec s i) as [-> | Ne].
  - replace (Datatypes.S i <=? i)%nat with false in IH by (symmetry; apply Nat.leb_gt; lia).
    rewrite Nat.leb_refl. replace (magnitude n 1) with 1%Z by (destruct n; reflexivity). lia.
  - replace (magnitude n 0) with 0%Z by (destruct n; reflexivity).
    destruct (Nat.leb_spec (Datatypes.S s) i), (Nat.leb_spec s i); lia.
Qed.

Lemma marks_length ls r : length (marks ls r) = length (rates_of ls).
Proof.
  revert r. induction ls as [| l ls IH]; intros r; [reflexivity |]. simpl. now rewrite !app_length, IH, repeat_length, mark_length.
Qed.

Lemma size_minus r m a b : (0 <= r)%Z -> Forall (fun z => z = 0%Z \/ z = 1%Z) a -> Forall (fun z => z = 0%Z \/ z = 1%Z) b ->
  length a = m -> length b = m ->
  (size (magnitude n) (repeat r m) (minus a b) <= size (magnitude n) (repeat r m) a + size (magnitude n) (repeat r m) b)%Z.
Proof.
  intros R0 A. revert m b. induction A as [| x a X _ IH]; intros m b B L L'; [subst; simpl; lia |].
  destruct B as [| y b Y B]; [simpl in *; lia |]. destruct m as [| m]; [discriminate |]. simpl in *.
  specialize (IH m b B ltac:(lia) ltac:(lia)). destruct n, X, Y; subst; simpl in *; lia.
Qed.

Lemma minus_length a b : length a = length b -> length (minus a b) = length b.
Proof.
  revert b. induction a as [| x a IH]; intros [| y b] L; simpl in *; try lia. rewrite IH; lia.
Qed.

Lemma minus_app a b c d : length a = length b -> minus (a ++ c) (b ++ d) = minus a b ++ minus c d.
Proof.
  revert b. induction a as [| x a IH]; intros [| y b] L; simpl in *; try lia; [destruct c; reflexivity |]. now rewrite IH by lia.
Qed.

Lemma size_change ls r r' : forallb (fun l => 0 <? snd l)%Z ls = true ->
  (size (magnitude n) (rates_of ls) (if replaced then minus (marks ls r) (marks ls r') else marks ls r) <= total ls)%Z.
Proof.
  revert r r'. induction ls as [| l ls IH]; intros r r' P; [destruct replaced; simpl; lia |].
  simpl in P. apply Bool.andb_true_iff in P as [P Q]. apply Z.ltb_lt in P. specialize (IH (tl r) (tl r') Q).
  assert (A := @size_mark _ (N.to_nat (fst l)) (hd 0%nat r) (Z.lt_le_incl _ _ P)).
  assert (B := @size_mark _ (N.to_nat (fst l)) (hd 0%nat r') (Z.lt_le_incl _ _ P)).
  simpl. unfold price. destruct replaced.
  - rewrite minus_app by now rewrite !mark_length. rewrite size_app by (now rewrite repeat_length, minus_length, mark_length by now rewrite !mark_length).
    destruct (Nat.eqb_spec (N.to_nat (fst l)) 1) as [-> | _]; [destruct n; simpl; lia |].
    generalize (@size_minus _ (N.to_nat (fst l)) (mark (N.to_nat (fst l)) (hd 0%nat r)) (mark (N.to_nat (fst l)) (hd 0%nat r'))
      (Z.lt_le_incl _ _ P) (mark_bits _ _) (mark_bits _ _) (mark_length _ _) (mark_length _ _)). lia.
  - rewrite size_app by (now rewrite repeat_length, mark_length). lia.
Qed.

Theorem structured {B} (rule : vec (ones read) -> vec (real_rates D (rates_of levels)) -> B) E F : affordable E F = true ->
  (forall c, change (marks levels) kind replaced c -> keeps rows c && keeps read c = true) ->
  holds n (neighbours D (rates_of levels) (marks levels) kind rows read replaced true k) (IZR (Zpos E) / IZR (Zpos F))
    (released (marks levels) rows n rule).
Proof.
  intros H S. apply Bool.andb_true_iff in H as [P H]. apply Z.leb_le in H.
  assert (P' : Forall (fun r => 0 < r)%Z (rates_of levels)).
  { apply Forall_forall. intros r I. apply in_flat_map in I as (l & I & R0). rewrite forallb_forall in P.
    specialize (P l I). apply Z.ltb_lt in P. apply repeat_spec in R0. now subst. }
  apply certified_by.
  - apply forallb_forall. intros r I. rewrite Forall_forall in P'. apply Z.ltb_lt. now apply P'.
  - intros c C. unfold sound. rewrite (S c C). destruct C as (j & _ & C).
    assert (Z0 := fun r r' => @size_change levels r r' P). apply Bool.andb_true_iff. split.
    + apply Nat.leb_le. destruct replaced; [destruct C as (i & _ & ->); rewrite minus_length |]; rewrite ?C, ?marks_length; lia.
    + apply Bool.andb_true_iff. split; [reflexivity |]. apply Z.leb_le. eapply Z.le_trans; [| exact H].
      apply Z.mul_le_mono_nonneg_l; [lia |]. destruct replaced; [destruct C as (i & _ & ->) | rewrite C]; apply Z0; exact j.
Qed.
End Structured.

(** Columns and rows by the places of their entries. *)
Definition line (n : nat) (places : list (Z * Z)) : list Z :=
  map (fun i => fold_right (fun p z => if (fst p =? Z.of_nat i)%Z then (snd p + z)%Z else z) 0%Z places) (seq 0 n).

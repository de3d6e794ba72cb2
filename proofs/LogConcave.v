(** Log-concave weights on the whole numbers, and the likelihood-ratio order.

    [lc f]: f(a) f(d) <= f(b) f(c) whenever a <= b, c <= d and a + d = b + c. [lr f g]: g is larger than f in the
    likelihood-ratio order, f(j) g(i) <= f(i) g(j) for i <= j.
    Everything follows from one inequality ([association]): if P <= P' and Q <= Q' in that order, then
    Σ P Q' · Σ P' Q <= Σ P Q · Σ P' Q'. Proved with it: sums of independent log-concave parts are log-concave
    ([lc_conv]); adding such a part keeps the order ([lr_conv]); sharing a total turns it round ([lr_corr]). *)

From Holdfast Require Export Laplace.
Set Implicit Arguments.
Unset Strict Implicit.
Open Scope Z_scope.
Open Scope R_scope.

Definition bounded (f : Z -> R) := (forall a, 0 <= f a) /\ exists c, forall a, f a <= c.
Definition lc (f : Z -> R) := (forall a, 0 <= f a) /\
  forall a b c d, (a + d = b + c)%Z -> (a <= b)%Z -> (a <= c)%Z -> f a * f d <= f b * f c.
Definition lr (f g : Z -> R) := forall i j, (i <= j)%Z -> f j * g i <= f i * g j.
Definition conv (f g : Z -> R) (t : Z) := sum (fun a => f a * g (t - a)%Z).
Definition corr (f g : Z -> R) (t : Z) := sum (fun a => f a * g (t + a)%Z).

Lemma summable_bounded f : summable f -> bounded f.
Proof. intros F. split; [apply F |]. exists (sum f). intros a. now apply sum_term. Qed.

Lemma summable_times f g : summable f -> bounded g -> summable (fun a => f a * g a).
Proof.
  intros F [N [c C]]. apply summable_le with (fun a => c * f a).
  - intros a. generalize (proj1 F a) (N a) (C a). nra.
  - apply summable_scale; auto. apply Rle_trans with (g 0%Z); auto.
Qed.

Lemma bounded_times f g : bounded f -> bounded g -> bounded (fun a => f a * g a).
Proof.
  intros [N [c C]] [N' [c' C']]. split; [intros; apply Rmult_le_pos; auto |]. exists (c * c'). intros a.
  apply Rmult_le_compat; auto.
Qed.

Lemma bounded_map (h : Z -> Z) g : bounded g -> bounded (fun a => g (h a)).
Proof. intros [N [c C]]. split; auto. exists c; auto. Qed.

Lemma lc_times f g : lc f -> lc g -> lc (fun a => f a * g a).
Proof.
  intros [N H] [N' H']. split; [intros; now apply Rmult_le_pos |]. intros a b c d E L L'.
  generalize (H a b c d E L L') (H' a b c d E L L'). intros U V.
  replace (_ * (f d * g d)) with (f a * f d * (g a * g d)) by ring.
  replace (f b * g b * _) with (f b * f c * (g b * g c)) by ring.
  apply Rmult_le_compat; auto; apply Rmult_le_pos; auto.
Qed.

Theorem association P P' Q Q' : summable P -> summable P' -> bounded Q -> bounded Q' -> lr P P' -> lr Q Q' ->
  sum (fun a => P a * Q' a) * sum (fun a => P' a * Q a) <= sum (fun a => P a * Q a) * sum (fun a => P' a * Q' a).
Proof.
  intros SP SP' BQ BQ' L M. apply sum_mirror; auto using summable_times. intros a b.
  enough (0 <= (P a * P' b - P b * P' a) * (Q a * Q' b - Q b * Q' a)) by lra.
  destruct (Z.le_ge_cases a b) as [H | H].
  - generalize (L a b H) (M a b H). nra.
  - generalize (L b a H) (M b a H). nra.
Qed.

Lemma lc_lr f k : lc f -> (0 <= k)%Z -> lr f (fun a => f (a - k)%Z).
Proof. intros [N H] K i j L. rewrite Rmult_comm. apply H; lia. Qed.

Lemma lc_reflect f t t' : lc f -> (t <= t')%Z -> lr (fun a => f (t - a)%Z) (fun a => f (t' - a)%Z).
Proof. intros [N H] K i j L. apply H; lia. Qed.

Lemma sum_move (f : Z -> R) k : summable f -> summable (fun a => f (a - k)%Z) /\ sum (fun a => f (a - k)%Z) = sum f.
Proof. exact (sum_shift (V := Z) k). Qed.

Lemma conv_move f g k t : summable f -> bounded g -> sum (fun a => f (a - k)%Z * g (t - a)%Z) = conv f g (t - k).
Proof.
  intros F G. unfold conv. assert (S : summable (fun a => f a * g (t - k - a)%Z)) by (apply summable_times; auto using (bounded_map (fun a => t - k - a)%Z)).
  rewrite <- (proj2 (sum_move k S)). apply sum_ext. intros a. f_equal. f_equal. lia.
Qed.

Lemma conv_bounded f g : summable f -> bounded g -> bounded (conv f g).
Proof.
  intros F G. assert (S : forall t, summable (fun a => f a * g (t - a)%Z)) by (intros; apply summable_times; auto using (bounded_map (fun a => t - a)%Z)).
  split; [intros t; now apply sum_nonneg |]. destruct G as [N [c C]]. exists (c * sum f). intros t.
  rewrite <- sum_scale; auto; [| apply Rle_trans with (g 0%Z); auto].
  apply sum_le; [| apply summable_scale; auto; apply Rle_trans with (g 0%Z); auto].
  intros a. generalize (proj1 F a) (N (t - a)%Z) (C (t - a)%Z). nra.
Qed.

Theorem lc_conv f g : summable f -> bounded g -> lc f -> lc g -> lc (conv f g).
Proof.
  intros F B LF LG. split; [intros t; now apply (proj1 (conv_bounded F B)) |]. intros a b c d E H1 H2.
  assert (K := @association f (fun i => f (i - (b - a)))%Z (fun i => g (b - i)%Z) (fun i => g (d - i)%Z)
    F (proj1 (sum_move (b - a) F)) (bounded_map _ B) (bounded_map _ B)
    (@lc_lr f (b - a)%Z LF ltac:(lia)) (@lc_reflect g b d LG ltac:(lia))).
  cbv beta in K. rewrite (@conv_move f g (b - a) b F B), (@conv_move f g (b - a) d F B) in K. fold (conv f g b) (conv f g d) in K.
  replace (b - (b - a))%Z with a in K by lia. replace (d - (b - a))%Z with c in K by lia.
  rewrite Rmult_comm. exact K.
Qed.

Theorem lr_conv f f' g : summable f -> summable f' -> bounded g -> lc g -> lr f f' -> lr (conv f g) (conv f' g).
Proof.
  intros F F' B G L i j H. rewrite Rmult_comm, (Rmult_comm (conv f g i)), Rmult_comm.
  rewrite (Rmult_comm (conv f' g j)).
  apply (@association f f' (fun a => g (i - a)%Z) (fun a => g (j - a)%Z)); auto using bounded_map, lc_reflect.
Qed.

(** Sharing a total: the larger one part, the smaller the other is likely to be. *)
Theorem lr_corr f f' g : summable f -> summable f' -> bounded g -> lc g -> lr f f' -> lr (corr f' g) (corr f g).
Proof.
  intros F F' B [N G] L i j H. rewrite Rmult_comm, (Rmult_comm (corr f' g i)).
  apply (@association f f' (fun a => g (j + a)%Z) (fun a => g (i + a)%Z)); auto using bounded_map.
  intros a b K. rewrite Rmult_comm. apply G; lia.
Qed.

Lemma conv_comm f g t : summable f -> bounded g -> conv f g t = conv g f t.
Proof.
  intros F B. unfold conv. assert (S : summable (fun a => f a * g (t - a)%Z)) by (apply summable_times; auto using (bounded_map (fun a => t - a)%Z)).
  rewrite <- (proj2 (@sum_bijection _ _ (fun a => t - a)%Z (fun a => t - a)%Z _ ltac:(intros; cbv beta; lia) ltac:(intros; cbv beta; lia) S)).
  apply sum_ext. intros a. cbv beta. replace (t - (t - a))%Z with a by lia. apply Rmult_comm.
Qed.

Lemma corr_conv f g t : summable f -> bounded g -> corr f g t = conv (fun a => f (- a)%Z) g t.
Proof.
  intros F B. unfold conv, corr. assert (S : summable (fun a => f a * g (t + a)%Z)) by (apply summable_times; auto using (bounded_map (fun a => t + a)%Z)).
  rewrite <- (proj2 (@sum_bijection _ _ Z.opp Z.opp _ ltac:(intros; cbv beta; lia) ltac:(intros; cbv beta; lia) S)).
  reflexivity.
Qed.

Lemma summable_reflect (f : Z -> R) : summable f -> summable (fun a => f (- a)%Z).
Proof. intros F. apply (@sum_bijection _ _ Z.opp Z.opp _ ltac:(intros; cbv beta; lia) ltac:(intros; cbv beta; lia) F). Qed.

Lemma corr_ok f g : summable f -> bounded g -> lc f -> lc g -> bounded (corr f g) /\ lc (corr f g).
Proof.
  intros F B LF LG. replace (corr f g) with (conv (fun a => f (- a)%Z) g)
    by (apply functional_extensionality; intros; symmetry; now apply corr_conv).
  split; [apply conv_bounded; auto using summable_reflect |].
  apply lc_conv; auto using summable_reflect. destruct LF as [N H]. split; auto. intros a b c d E H1 H2.
  rewrite Rmult_comm. apply H; lia.
Qed.

Lemma conv_doubly f g w : summable f -> summable g -> bounded w -> doubly (fun a t => f a * (g (t - a)%Z * w t)).
Proof.
  intros F G [N [c C]]. assert (S : forall a, summable (fun t => g (t - a)%Z * w t))
    by (intros; apply summable_times; [apply (sum_move a G) | split; eauto]).
  assert (C0 : 0 <= c) by (apply Rle_trans with (w 0%Z); auto).
  apply doubly_scale with (c * sum g); auto; [| apply Rmult_le_pos; auto using sum_nonneg].
  intros a. rewrite <- (proj2 (sum_move a G)), <- sum_scale by (auto; apply (sum_move a G)).
  apply sum_le; [| apply summable_scale; auto; apply (sum_move a G)]. intros t.
  generalize (proj1 G (t - a)%Z) (N t) (C t). nra.
Qed.

(** A function of the sum of two parts, summed over both. *)
Lemma sum_conv f g w : summable f -> summable g -> bounded w ->
  summable (fun t => conv f g t * w t) /\ sum (fun t => conv f g t * w t) = sum (fun a => f a * corr g w a).
Proof.
  intros F G B. assert (D := conv_doubly F G B).
  assert (E : (fun t => conv f g t * w t) = (fun t => sum (fun a => f a * (g (t - a)%Z * w t)))).
  { apply functional_extensionality. intros t. unfold conv.
    rewrite Rmult_comm, <- sum_scale; [apply sum_ext; intros; lra | apply B |].
    apply summable_times; auto. apply (bounded_map (fun a => t - a)%Z), summable_bounded, G. }
  rewrite E. split; [apply (doubly_flip D) |]. rewrite (swap D). apply sum_ext. intros a.
  assert (S : summable (fun b => g b * w (a + b)%Z)) by (apply summable_times; auto; apply (bounded_map (fun b => a + b)%Z B)).
  rewrite sum_scale; [| apply F | apply summable_times; auto; apply (sum_move a G)]. f_equal. unfold corr.
  rewrite <- (proj2 (sum_move a S)). apply sum_ext. intros t. f_equal. f_equal. lia.
Qed.

Lemma conv_summable f g : summable f -> summable g -> summable (conv f g).
Proof.
  intros F G. assert (B : bounded (fun _ => 1)) by (split; [intros; lra | exists 1; intros; lra]).
  replace (conv f g) with (fun t => conv f g t * 1) by (apply functional_extensionality; intros; lra).
  now apply (@sum_conv f g (fun _ => 1)).
Qed.

//! Losses of one prediction and one target for each element, as expressions.

use brisk_kernels::Interval;
use brisk_kernels::expr::Expr;

use crate::elementwise::ElementwiseOperation;
use crate::graph::autocast::AutocastRule;
use crate::graph::tensor::Tensor;
use crate::loss::check_settings;
use crate::loss_reduction::LossReduction;

/// Elementwise losses: `self` is the prediction, `target` gets a gradient too if it needs one.
///
/// # Shapes
/// `self`, `target`: the same; of `[n, 1]` and `[n]`, each prediction would be compared with each target. The result has no
/// dimensions, or the shape of the input for [`LossReduction::None`].
/// # Errors
/// All: [`Error::Shape`](crate::Error::Shape) if the shapes differ, [`Error::Dtype`](crate::Error::Dtype),
/// [`Error::ForeignTensor`](crate::Error::ForeignTensor); [`Error::Refused`](crate::Error::Refused) for a number that is not
/// finite, or outside of what the loss takes.
impl Tensor {
    /// `|x - target|`.
    ///
    /// # Reference
    /// `torch.nn.functional.l1_loss`.
    #[track_caller]
    pub fn l1_loss(&self, target: &Self, reduction: LossReduction) -> Self {
        self.loss("l1_loss", target, reduction, |x, target| (x - target).abs())
    }

    /// `(x - target)² / (2 beta)` where `|x - target| < beta`, else `|x - target| - beta / 2`; `beta` is at least 0.
    ///
    /// # Reference
    /// `torch.nn.functional.smooth_l1_loss`.
    #[track_caller]
    pub fn smooth_l1_loss(&self, target: &Self, beta: f32, reduction: LossReduction) -> Self {
        let settings = [("beta", beta, Interval::NonNegative)];
        self.loss_with("smooth_l1_loss", &settings, target, reduction, |x, target| {
            let distance = (x - target).abs();
            if beta == 0.0 {
                return distance;
            }
            // NaN is in the curve, where its gradient is NaN, too.
            distance.ge(beta).select(&distance - 0.5 * beta, distance.powi(2) * (0.5 / beta))
        })
    }

    /// `(x - target)² / 2` where `|x - target| ≤ delta`, else `delta (|x - target| - delta / 2)`; `delta` is above 0.
    ///
    /// # Reference
    /// `torch.nn.functional.huber_loss`; Huber 1964.
    #[track_caller]
    pub fn huber_loss(&self, target: &Self, delta: f32, reduction: LossReduction) -> Self {
        self.loss_with("huber_loss", &[("delta", delta, Interval::Positive)], target, reduction, |x, target| {
            let distance = (x - target).abs();
            // NaN is in the curve, where its gradient is NaN, too.
            distance.gt(delta).select((&distance - 0.5 * delta) * delta, distance.powi(2) * 0.5)
        })
    }

    /// `-target log x - (1 - target) log(1 - x)` of probabilities, with logarithms of at least -100. For logits, use
    /// [`bce_with_logits`](Self::bce_with_logits), which is accurate for probabilities near 0 and 1.
    ///
    /// # Reference
    /// `torch.nn.functional.binary_cross_entropy`.
    #[track_caller]
    pub fn binary_cross_entropy(&self, target: &Self, reduction: LossReduction) -> Self {
        let [x, t] = [0, 1].map(Expr::input);
        let log = |p: Expr| p.log().max(-100.0);
        let loss = -(&t * log(x.clone()) + (1.0 - &t) * log(1.0 - &x));
        // As in PyTorch, finite for probabilities that are rounded to 0 or 1.
        let slope = (&x - &t) / (&x * (1.0 - &x)).max(1e-12);
        let operation = ElementwiseOperation::new("binary_cross_entropy", loss).with_derivative(0, slope);
        self.reduced_loss(operation, target, reduction)
    }

    /// Binary cross-entropy of logits that gives well-classified elements less weight: times `(1 - p_t)^gamma`, where `p_t` is
    /// the probability of the target, and `alpha` for targets of 1, `1 - alpha` for targets of 0. `alpha` is from 0 to 1, or -1
    /// for equal weights; `gamma` is at least 0.
    ///
    /// # Reference
    /// Lin et al. 2017, arXiv:1708.02002; `torchvision.ops.sigmoid_focal_loss`.
    #[track_caller]
    pub fn focal_loss(&self, target: &Self, alpha: f32, gamma: f32, reduction: LossReduction) -> Self {
        let is_weighted = alpha != -1.0;
        let alpha = if is_weighted { alpha } else { 0.5 };
        let settings = [("alpha", alpha, Interval::Unit), ("gamma", gamma, Interval::NonNegative)];
        self.loss_with("focal_loss", &settings, target, reduction, |x, target| {
            let is_not = 1.0 - &target;
            let p = x.sigmoid();
            // max(x, 0) - x target + log(1 + e^-|x|), with branches whose slopes at 0 add up to 1/2.
            let minus_abs = x.gt(0.0).select(-&x, &x);
            let cross_entropy = x.relu() - &x * &target + minus_abs.exp().log1p();
            let not_p_t = 1.0 - (&p * &target + (1.0 - &p) * &is_not);
            let loss = cross_entropy * not_p_t.powf(gamma);
            if is_weighted { loss * (&target * alpha + is_not * (1.0 - alpha)) } else { loss }
        })
    }

    /// `target (log target - x)` of log-probabilities `x` and target probabilities; 0 where the target is 0, NaN where it is
    /// negative. A mean divides by the number of elements.
    ///
    /// # Reference
    /// `torch.nn.functional.kl_div`.
    #[track_caller]
    pub fn kl_div(&self, target: &Self, reduction: LossReduction) -> Self {
        self.loss("kl_div", target, reduction, |x, target| Expr::eq(&target, 0.0).select(0.0, &target * (target.log() - x)))
    }

    /// `e^x - target x` of log-rates `x` and counts: the negative log-likelihood of a Poisson distribution, without the term of
    /// the target's factorial.
    ///
    /// # Reference
    /// `torch.nn.functional.poisson_nll_loss` with `log_input=True`.
    #[track_caller]
    pub fn poisson_nll_loss(&self, target: &Self, reduction: LossReduction) -> Self {
        self.loss("poisson_nll_loss", target, reduction, |x, target| x.exp() - target * x)
    }

    /// `max(0, margin - target x)` of scores and targets of 1 and -1.
    ///
    /// # Reference
    /// `torch.nn.HingeEmbeddingLoss` has another form; this is the loss of a support vector machine (Cortes & Vapnik 1995).
    #[track_caller]
    pub fn hinge_loss(&self, target: &Self, margin: f32, reduction: LossReduction) -> Self {
        self.loss_with("hinge_loss", &[("margin", margin, Interval::Finite)], target, reduction, |x, target| {
            let distance = margin - target * x;
            // The slope at the margin is 0, as for `torch.clamp`.
            distance.le(0.0).select(0.0, distance)
        })
    }

    /// `max(q (target - x), (q - 1) (target - x))`, whose minimum is the quantile `q`, between 0 and 1.
    ///
    /// # Reference
    /// Koenker & Bassett 1978, also called pinball loss.
    #[track_caller]
    pub fn quantile_loss(&self, target: &Self, quantile: f32, reduction: LossReduction) -> Self {
        self.loss_with("quantile_loss", &[("quantile", quantile, Interval::Open)], target, reduction, |x, target| {
            let distance = target - x;
            (&distance * quantile).max(&distance * (quantile - 1.0))
        })
    }

    #[track_caller]
    fn loss(&self, name: &'static str, target: &Self, reduction: LossReduction, f: impl FnOnce(Expr, Expr) -> Expr) -> Self {
        self.loss_with(name, &[], target, reduction, f)
    }

    #[track_caller]
    fn loss_with(
        &self,
        name: &'static str,
        settings: &[(&'static str, f32, Interval)],
        target: &Self,
        reduction: LossReduction,
        f: impl FnOnce(Expr, Expr) -> Expr,
    ) -> Self {
        if let Err(error) = check_settings(name, settings) {
            return self.refused(error, if reduction == LossReduction::None { self.shape() } else { &[] });
        }
        self.reduced_loss(ElementwiseOperation::new(name, f(Expr::input(0), Expr::input(1))), target, reduction)
    }

    #[track_caller]
    fn reduced_loss(&self, loss: ElementwiseOperation, target: &Self, reduction: LossReduction) -> Self {
        let name = loss.name;
        if let Err(error) = self.check_target(name, target) {
            return self.refused(error, if reduction == LossReduction::None { self.shape() } else { &[] });
        }
        let losses = self.graph().apply(loss.with_autocast_rule(AutocastRule::Full), &[self, target]);
        match reduction {
            LossReduction::None => losses,
            LossReduction::Sum => losses.sum(..),
            LossReduction::Mean => losses.mean(..),
        }
    }
}

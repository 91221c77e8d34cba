//! Recipes: network, augmentation, optimizer, schedule and evaluation of fast CIFAR-10 training, with a setting for each trick.

use brisk_nn::tensor::program::Device;
use brisk_nn::tensor::program::kernels::Interval;
use brisk_nn::tensor::{Activation, Flip, ImageAugmentation, Mixing, Tensor};
use brisk_nn::{
    Augment, Bound, CombinedOptimizer, EmaConfig, Init, Lookahead, Module, Momentum, Muon, MuonNorm, MuonScale, Optimizer,
    ParameterGroup, ParameterId, Parameters, ParametersBuilder, Scale, Schedule, Scheduled, Sgd, Steps,
};

use crate::airbench::{Airbench, AirbenchConfig};
use crate::augmented_images::AugmentedImages;
use crate::error::Error;
use crate::mixed_images::MixedImages;
use crate::resnet9::{NormOrder, ResNet9, ResNet9Config};
use crate::views::View;
use crate::whitening::Patches;

/// Everything that determines a training run on images, except for the images, the device and the seed.
///
/// Learning rates and weight decays are for the mean loss of a batch. The authors' scripts sum losses: their rates equal these
/// divided by the batch size, and their decays equal these multiplied by it.
#[derive(Debug, Clone, PartialEq)]
pub struct Recipe {
    /// The network.
    pub network: NetworkConfig,
    /// Images per batch. Images at the end of an epoch that do not fill a batch are dropped.
    pub batch_rows: usize,
    /// The number of epochs; the last may be a fraction of one.
    pub n_epochs: f64,
    /// The fraction of each target that is spread over all classes.
    pub label_smoothing: f32,
    /// How the images of a batch are augmented.
    pub augmentation: ImageAugmentation,
    /// How images are mixed with others; `None` if they are not, as in the authors' recipes.
    pub mixing: Option<Mixing>,
    /// How the whitening filters are computed.
    pub whitening: Whitening,
    /// The optimizers and their learning rates.
    pub rates: Rates,
    /// The views of an image over which outputs are averaged in the final evaluation.
    pub views: Vec<View>,
}

/// The network of a recipe.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub enum NetworkConfig {
    /// [`ResNet9`].
    ResNet9(ResNet9Config),
    /// [`Airbench`].
    Airbench(AirbenchConfig),
}

/// How whitening filters are computed.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Whitening {
    /// The number of images, from the start of the training set, that the covariance is computed from.
    pub n_images: usize,
    /// The value that is added to the variances.
    pub eps: f32,
}

/// Learning rates and weight decays, for the mean loss of a batch.
#[derive(Debug, Clone, Copy, PartialEq)]
#[non_exhaustive]
pub enum Rates {
    /// Stochastic gradient descent with Nesterov momentum 0.9, with the rate folded into the velocity; the rate rises linearly
    /// from 0, then falls linearly.
    Page {
        /// The highest rate.
        peak: f64,
        /// The epoch in which it is reached.
        peak_epoch: f64,
        /// The rate of the last epochs.
        floor: f64,
        /// The number of epochs at that rate.
        floor_epochs: f64,
        /// Weight decay.
        weight_decay: f32,
        /// The factor by which the rate of the biases exceeds that of the weights; their decay is divided by it.
        bias_factor: f32,
        /// Whether an exponential moving average of weights and running statistics is evaluated instead of the weights:
        /// [`Recipe::ema`].
        is_averaged: bool,
    },
    /// Stochastic gradient descent with Nesterov momentum 0.85; the rate rises from 0.2 to 1 times `peak` in the first 23 % of
    /// the steps and falls to 0.07. The whitening bias is trained in the first three epochs. Lookahead is applied every five
    /// steps: its slow weights follow closely at first, and the run ends with them.
    Airbench {
        /// The highest rate.
        peak: f64,
        /// Weight decay of the weights.
        weight_decay: f32,
        /// The factor by which the rate of the biases exceeds that of the weights; their decay is divided by it.
        bias_factor: f32,
    },
    /// Muon for the convolutions, whose norms stay fixed, and stochastic gradient descent with Nesterov momentum 0.85 for the
    /// rest; all rates fall linearly to 0. The whitening bias is trained in the first three eighths of the steps, at a rate that
    /// falls to 0 by then.
    Muon {
        /// The rate of Muon.
        filters: f64,
        /// The rate of the linear layer.
        head: f64,
        /// The rate of the biases.
        biases: f64,
        /// The fraction by which the head and the biases shrink in each step at the full rate.
        decay: f64,
    },
}

/// The network of a [`Recipe`], as a module.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub enum Network {
    /// [`ResNet9`].
    ResNet9(Box<ResNet9>),
    /// [`Airbench`].
    Airbench(Box<Airbench>),
}

/// The rungs of the ladder of [`Recipe::page_rung`], from the baseline to the last trick. The article's first step, from
/// augmentation on the host to augmentation on the device, does not change results; the baseline here already augments on the
/// device.
pub const PAGE_RUNGS: [&str; 10] = [
    "baseline",
    "augmentation on the device",
    "pooling before normalisation",
    "label smoothing",
    "CELU",
    "ghost batch normalisation",
    "frozen scales",
    "patch whitening",
    "average of weights",
    "mirrored views in evaluation",
];

impl Recipe {
    /// The final recipe of Page's *Bag of tricks*: 10 epochs, 94 % in 26 s on a V100.
    pub fn page() -> Self {
        Self::page_rung(PAGE_RUNGS.len() - 1)
    }

    /// A rung of the article's ladder, [`PAGE_RUNGS`]: that trick and all before it, with the epochs, rates and cutout of the
    /// article. Larger numbers give the last rung.
    pub fn page_rung(rung: usize) -> Self {
        let rung = rung.min(PAGE_RUNGS.len() - 1);
        let has = |trick: usize| rung > trick;
        let network = ResNet9Config {
            order: if has(1) { NormOrder::PoolFirst } else { NormOrder::PoolLast },
            activation: match rung {
                0..=3 => Activation::relu(),
                4 | 5 => Activation::celu(0.075),
                _ => Activation::celu(0.3),
            },
            ghost_rows: has(4).then_some(32),
            scale: if has(5) { Scale::Frozen } else { Scale::Trained },
            logit_scale: if has(5) { 1.0 / 16.0 } else { 1.0 / 8.0 },
            is_whitened: has(6),
            ..ResNet9Config::baseline()
        };
        let n_epochs = [24.0, 24.0, 25.0, 23.0, 20.0, 18.0, 17.0, 14.0, 13.0, 10.0][rung];
        let rates = Rates::Page {
            peak: [0.4, 0.4, 0.4, 0.4, 0.4, 0.6, 0.6, 1.0, 1.0, 1.0][rung],
            peak_epoch: if has(2) { n_epochs / 5.0 } else { 5.0 },
            floor: if has(7) { 0.1 } else { 0.0 },
            floor_epochs: if has(7) { 2.0 } else { 0.0 },
            weight_decay: 5e-4,
            bias_factor: if has(5) { 64.0 } else { 1.0 },
            is_averaged: has(7),
        };
        let cutout = match rung {
            0..=6 => 8,
            7 | 8 => 5,
            _ => 0,
        };
        Self {
            network: NetworkConfig::ResNet9(network),
            batch_rows: 512,
            n_epochs,
            label_smoothing: if has(2) { 0.2 } else { 0.0 },
            augmentation: ImageAugmentation { pad: 4, flip: Flip::Random, cutout, ..ImageAugmentation::default() },
            mixing: None,
            whitening: Whitening { n_images: 10_000, eps: 1e-2 },
            rates,
            views: if has(8) { View::mirrored() } else { View::plain() },
        }
    }

    /// airbench94: 9.9 epochs, 94 % in 3.8 s on an A100.
    pub fn airbench() -> Self {
        // The author's rate is decoupled from the momentum: k = 1024 (1 + 1 / (1 - m)).
        let (momentum, batch_rows) = (0.85, 1024.0);
        let k = 1024.0 * (1.0 + 1.0 / (1.0 - momentum));
        let rate = 11.5 / k;
        let decay = 0.0153 * batch_rows / k / rate;
        Self {
            network: NetworkConfig::Airbench(AirbenchConfig::cifar10()),
            batch_rows: 1024,
            n_epochs: 9.9,
            label_smoothing: 0.2,
            augmentation: ImageAugmentation { pad: 2, flip: Flip::Alternating, ..ImageAugmentation::default() },
            mixing: None,
            whitening: Whitening { n_images: 5000, eps: 5e-4 },
            rates: Rates::Airbench { peak: rate * batch_rows, weight_decay: (decay / batch_rows) as f32, bias_factor: 64.0 },
            views: View::six(),
        }
    }

    /// airbench94 with Muon: 8 epochs, 94 % in 2.6 s on an A100.
    pub fn muon() -> Self {
        Self {
            network: NetworkConfig::Airbench(AirbenchConfig::cifar10_muon()),
            batch_rows: 2000,
            n_epochs: 8.0,
            rates: Rates::Muon { filters: 0.24, head: 0.67 * 2000.0, biases: 0.053 * 2000.0, decay: 2e-6 * 2000.0 },
            ..Self::airbench()
        }
    }

    /// The recipe for a network that trains in minutes on two CPU cores: a quarter of the widths or less, and small batches. On
    /// 10,000 images of CIFAR-10, 15 epochs give about 79 % with [`page`](Self::page) and [mirrored views](View::mirrored), and
    /// 81 % and 83 % with [`airbench`](Self::airbench) and [`muon`](Self::muon) and [six views](View::six).
    pub fn narrow(self) -> Self {
        match (&self.network, &self.rates) {
            (NetworkConfig::ResNet9(_), _) => self.narrowed(&[8, 16, 32, 64], 128),
            (NetworkConfig::Airbench(_), Rates::Muon { .. }) => self.narrowed(&[16, 32, 64], 500),
            (NetworkConfig::Airbench(_), _) => self.narrowed(&[16, 32, 64], 256),
        }
    }

    /// The same recipe with other widths and another batch size. `widths` are those of the three groups of [`Airbench`], or the
    /// four stages of [`ResNet9`].
    ///
    /// The rates of [`Rates::Muon`] for head and biases scale with the last width, by which outputs are divided, so a step
    /// changes the outputs by the same amount.
    pub fn narrowed(mut self, widths: &[usize], batch_rows: usize) -> Self {
        let last = widths.last().copied().unwrap_or(1);
        match &mut self.network {
            NetworkConfig::Airbench(config) => {
                let before = config.widths[2];
                config.widths = std::array::from_fn(|i| widths.get(i).copied().unwrap_or(last));
                if let Rates::Muon { head, biases, .. } = &mut self.rates {
                    let factor = last as f64 / before as f64;
                    (*head, *biases) = (*head * factor, *biases * factor);
                    config.logit_scale = 1.0 / last as f32;
                }
            }
            NetworkConfig::ResNet9(config) => {
                config.widths = std::array::from_fn(|i| widths.get(i).copied().unwrap_or(last));
            }
        }
        self.with_batch_rows(batch_rows)
    }

    /// The same recipe with another batch size, which must be a multiple of the [ghost batches](Self::ghost_rows).
    /// [`Rates::Muon`] keeps its weight decay per image. Below 64 images, the rates of stochastic gradient descent are
    /// proportional to the batch size: with the noise of so few images, higher ones drive biases so low that all activations
    /// vanish.
    pub fn with_batch_rows(mut self, batch_rows: usize) -> Self {
        let noisy = |rows: usize| rows.clamp(1, FULL_RATE_ROWS) as f64;
        let factor = noisy(batch_rows) / noisy(self.batch_rows);
        match &mut self.rates {
            Rates::Page { peak, floor, .. } => (*peak, *floor) = (*peak * factor, *floor * factor),
            Rates::Airbench { peak, .. } => *peak *= factor,
            Rates::Muon { head, biases, decay, .. } => {
                (*head, *biases) = (*head * factor, *biases * factor);
                *decay *= batch_rows as f64 / self.batch_rows as f64;
            }
        }
        self.batch_rows = batch_rows;
        self
    }

    /// The same recipe with another number of epochs. Each phase of the schedule keeps its share of the run.
    pub fn with_epochs(mut self, n_epochs: f64) -> Self {
        let factor = n_epochs / self.n_epochs;
        self.n_epochs = n_epochs;
        if let Rates::Page { peak_epoch, floor_epochs, .. } = &mut self.rates {
            (*peak_epoch, *floor_epochs) = (*peak_epoch * factor, *floor_epochs * factor);
        }
        self
    }

    /// The same recipe for images of another size, with another number of channels or classes. Both networks end with a maximum
    /// over all pixels, so weights trained at one image size also fit another.
    ///
    /// # Errors
    /// [`Error::ImageSize`] if no pixels are left after pooling: [`Airbench`] needs sides of at least 9 pixels, [`ResNet9`] of 8.
    ///
    /// # Examples
    /// ```
    /// use brisk_vision::Recipe;
    ///
    /// // Digits of 28 x 28 grey pixels.
    /// let recipe = Recipe::muon().for_images([28, 28, 1], 10)?;
    /// assert_eq!(recipe.image(), [28, 28, 1]);
    /// # Ok::<(), brisk_vision::Error>(())
    /// ```
    pub fn for_images(mut self, image: [usize; 3], n_classes: usize) -> Result<Self, Error> {
        let (network, min_side) = match &mut self.network {
            NetworkConfig::Airbench(config) => {
                (config.image, config.n_classes) = (image, n_classes);
                if let Init::FanIn(_) = config.whitening_bias {
                    config.whitening_bias = Init::FanIn(config.patch_len());
                }
                ("Airbench", 9)
            }
            NetworkConfig::ResNet9(config) => {
                (config.image, config.n_classes) = (image, n_classes);
                ("ResNet9", 8)
            }
        };
        let [height, width, n_channels] = image;
        if height.min(width) < min_side || n_channels == 0 {
            return Err(Error::ImageSize { network, found: image, min_side });
        }
        Ok(self)
    }

    /// The number of batches in an epoch over `n_rows` images.
    pub fn epoch_steps(&self, n_rows: usize) -> usize {
        n_rows.checked_div(self.batch_rows).unwrap_or(0)
    }

    /// The number of steps in a run over `n_rows` images.
    pub fn n_steps(&self, n_rows: usize) -> usize {
        (self.n_epochs * self.epoch_steps(n_rows) as f64).ceil() as usize
    }

    /// How training batches are made: images are augmented, then mixed, with random numbers that depend on `seed`.
    pub fn augment(&self, seed: u64) -> Box<dyn Augment> {
        let augmentation = ImageAugmentation { seed, ..self.augmentation };
        let images = AugmentedImages { image: self.image(), augmentation };
        match self.mixing {
            None => Box::new(images),
            Some(mixing) => Box::new(MixedImages { images, mixing, seed }),
        }
    }

    /// Builds the network.
    pub fn build(&self, params: &mut ParametersBuilder) -> Network {
        match &self.network {
            NetworkConfig::ResNet9(config) => Network::ResNet9(Box::new(ResNet9::new(params, config))),
            NetworkConfig::Airbench(config) => Network::Airbench(Box::new(Airbench::new(params, config))),
        }
    }

    /// Sets the initial values of the whitening filters, computed from the first of `images`, and scales those of the head to
    /// standard deviation 1 for [`Rates::Muon`].
    ///
    /// # Shapes
    /// `images`: `[n, height, width, n_channels]`, standardised.
    /// # Errors
    /// As [`check`](Self::check) and [`Patches::covariance`].
    pub fn initialise(&self, network: &Network, params: &mut Parameters, device: &Device, images: &[f32]) -> Result<(), Error> {
        self.check()?;
        let image = self.image();
        let n = images.len().min(self.whitening.n_images * image.iter().product::<usize>());
        let covariance = |patch| Patches { image, patch }.covariance(device, &images[..n]);
        let eps = self.whitening.eps;
        match network {
            Network::ResNet9(network) if network.is_whitened() => {
                network.set_whitening(params, &covariance(network.patch())?, eps)?;
            }
            Network::ResNet9(_) => {}
            Network::Airbench(network) => {
                network.set_whitening(params, &covariance(network.patch())?, eps)?;
                if let Rates::Muon { .. } = self.rates {
                    let head = params.initial_of(network.head());
                    let n = head.len() as f64;
                    let mean = head.iter().map(|&w| f64::from(w)).sum::<f64>() / n;
                    let variance = head.iter().map(|&w| (f64::from(w) - mean).powi(2)).sum::<f64>() / (n - 1.0);
                    let scaled: Vec<f32> = head.iter().map(|&w| (f64::from(w) / variance.sqrt()) as f32).collect();
                    params.set_initial(network.head(), &scaled)?;
                }
            }
        }
        Ok(())
    }

    /// The number of images of a ghost batch, of which the batch size must be a multiple; `None` for a recipe that normalises
    /// whole batches.
    pub fn ghost_rows(&self) -> Option<usize> {
        match &self.network {
            NetworkConfig::ResNet9(config) => config.ghost_rows,
            NetworkConfig::Airbench(_) => None,
        }
    }

    /// Height, width and channels of an image.
    pub fn image(&self) -> [usize; 3] {
        match &self.network {
            NetworkConfig::ResNet9(config) => config.image,
            NetworkConfig::Airbench(config) => config.image,
        }
    }

    /// The learning rate of each step of a run over `n_rows` images. Its highest value is 1 for [`Rates::Muon`], whose parameter
    /// groups multiply it by factors.
    pub fn schedule(&self, n_rows: usize) -> Schedule {
        let (epoch, n_steps) = (self.epoch_steps(n_rows) as f64, self.n_steps(n_rows));
        // In the authors' code, the rate of a step is that at its end, not at its start.
        let at = |epochs: f64| ((epochs * epoch).round() as usize).saturating_sub(1);
        // In runs of a few steps, several points can fall on the same step; each of them moves to the next free step.
        let points = |points: Vec<(usize, f64)>| {
            let mut next = 0;
            let place = |(step, rate): (usize, f64)| {
                let step = step.max(next);
                next = step + 1;
                (Steps::from(step), rate)
            };
            Schedule::PiecewiseLinear { points: points.into_iter().map(place).collect() }
        };
        match self.rates {
            Rates::Page { peak, peak_epoch, floor, floor_epochs, .. } => {
                let first = peak / (peak_epoch * epoch).max(1.0);
                points(vec![(0, first), (at(peak_epoch), peak), (at(self.n_epochs - floor_epochs), floor)])
            }
            Rates::Airbench { peak, .. } => {
                let warm = (0.23 * n_steps as f64).floor() as usize;
                points(vec![(0, 0.2 * peak), (warm, peak), (n_steps, 0.07 * peak)])
            }
            Rates::Muon { .. } => points(vec![(0, 1.0), (n_steps, 0.0)]),
        }
    }

    /// Checks the settings that decide how the recipe trains; [`optimizer`](Self::optimizer) and [`initialise`](Self::initialise)
    /// do.
    ///
    /// # Errors
    /// [`Refused`](brisk_nn::Error::Refused) for a setting outside of its range.
    pub fn check(&self) -> Result<(), brisk_nn::Error> {
        let refused = |found, expected| Err(brisk_nn::Error::Refused { op: "recipe", found, expected });
        for (name, n) in [("batch_rows", self.batch_rows), ("whitening.n_images", self.whitening.n_images)] {
            if n == 0 {
                return refused(format!("{name} = 0"), "at least 1");
            }
        }
        let n_classes = match &self.network {
            NetworkConfig::ResNet9(config) => config.n_classes,
            NetworkConfig::Airbench(config) => config.n_classes,
        };
        if n_classes == 0 {
            return refused("n_classes = 0".to_owned(), "at least 1");
        }
        if let Some(rows) = self.ghost_rows().filter(|&rows| rows == 0 || !self.batch_rows.is_multiple_of(rows)) {
            let found = format!("batch_rows = {}, ghost batches of {rows}", self.batch_rows);
            return refused(found, "a batch that consists of ghost batches");
        }
        let checked = Interval::Positive
            .check("n_epochs", self.n_epochs)
            .and_then(|()| Interval::Unit.check("label_smoothing", self.label_smoothing))
            .and_then(|()| Interval::NonNegative.check("whitening.eps", self.whitening.eps));
        checked.or_else(|outside| refused(format!("{} = {}", outside.name, outside.found), outside.expected))
    }

    /// The optimizer of a run over `n_rows` images, without the [average](Self::ema) of the weights.
    ///
    /// # Errors
    /// Those of [`check`](Self::check), and of [`Muon::new`] and [`Sgd::groups`], if the parameters belong to another network.
    pub fn optimizer(
        &self,
        network: &Network,
        params: &Parameters,
        n_rows: usize,
    ) -> Result<Box<dyn Optimizer>, brisk_nn::Error> {
        self.check()?;
        let n_steps = self.n_steps(n_rows);
        let whitening = match network {
            Network::ResNet9(_) => None,
            Network::Airbench(network) => Some(network.whitening_bias()),
        };
        let is_bias = |name: &str| name.ends_with(".bias");
        let all_but_whitening = |wanted: bool| {
            let ids = params.ids_where(|entry| is_bias(&entry.name) == wanted).into_iter();
            ids.filter(|id| Some(*id) != whitening).collect::<Vec<_>>()
        };
        let (biases, weights) = (all_but_whitening(true), all_but_whitening(false));
        let group =
            |ids: Vec<ParameterId>, factor: f32, decay: f32| ParameterGroup::new(ids).lr_factor(factor).weight_decay(decay);
        let sgd = |momentum, form, groups: &[ParameterGroup]| Sgd::new(params).momentum(momentum, form).groups(params, groups);
        // The whitening bias is trained only in the first steps.
        let with_early = |others: CombinedOptimizer, rate: f64, decay: f32, end: usize, schedule: Schedule| {
            let Some(whitening) = whitening else { return Ok::<_, brisk_nn::Error>(others) };
            let rates = (0..end).map(|step| (Steps::from(step), rate * schedule.rate(step, n_steps)));
            let points = rates.chain([(Steps::from(end), 0.0)]).collect();
            let bias = sgd(0.85, Momentum::Nesterov, &[group(vec![whitening], 1.0, decay)])?;
            Ok(others.and(Scheduled::new(bias, &Schedule::PiecewiseLinear { points }, end + 1)))
        };
        Ok(match self.rates {
            Rates::Page { weight_decay, bias_factor, .. } => {
                let groups = [group(biases, bias_factor, weight_decay / bias_factor), group(weights, 1.0, weight_decay)];
                Box::new(sgd(0.9, Momentum::FoldedNesterov, &groups)?)
            }
            Rates::Airbench { weight_decay, bias_factor, .. } => {
                let groups = [group(biases, bias_factor, weight_decay / bias_factor), group(weights, 1.0, weight_decay)];
                let end = (self.epoch_steps(n_rows) * WHITENING_EPOCHS).min(n_steps);
                let others = CombinedOptimizer::new().and(sgd(0.85, Momentum::Nesterov, &groups)?);
                let both = with_early(others, 1.0, weight_decay, end, self.schedule(n_rows))?;
                let decay = |update: usize| {
                    let done = (((update + 1) * LOOKAHEAD_STEPS) as f64 / n_steps as f64).min(1.0);
                    (0.95_f64.powi(LOOKAHEAD_STEPS as i32) * done.powi(3)) as f32
                };
                let decays = (0..(n_steps / LOOKAHEAD_STEPS).max(1)).map(decay).collect();
                Box::new(Lookahead::new(both, params, LOOKAHEAD_STEPS as u32, decays).ending_at(n_steps))
            }
            Rates::Muon { filters, head, biases: bias_rate, decay } => {
                let matrices = params.ids_where(|entry| entry.shape.len() == 4);
                let muon = Muon::new(params, &matrices)?
                    .momentum(0.6, Momentum::Nesterov)
                    .weight_decay(0.0)
                    .lr_factor(filters as f32)
                    .newton_schulz(3, [3.4445, -4.7750, 2.0315])
                    .scale(MuonScale::Plain)
                    .norm(MuonNorm::SqrtRows);
                let linear = params.ids_where(|entry| entry.shape.len() == 2);
                let by_rate = |ids, rate: f64| group(ids, rate as f32, (decay / rate) as f32);
                let groups = [by_rate(linear, head), by_rate(biases, bias_rate)];
                let end = self.whitening_steps(n_rows);
                let falling = Schedule::PiecewiseLinear { points: vec![(Steps::from(0), 1.0), (Steps::from(end), 0.0)] };
                let others = CombinedOptimizer::new().and(muon).and(sgd(0.85, Momentum::Nesterov, &groups)?);
                Box::new(with_early(others, bias_rate, (decay / bias_rate) as f32, end, falling)?)
            }
        })
    }

    /// The average of weights and running statistics that the recipe evaluates instead of the weights, in a run over `n_rows`
    /// images; `None` if it evaluates the weights, as with [`Rates::Airbench`] and [`Rates::Muon`]. Pass it to `Trainer::ema`;
    /// without it, the weights of Page's last epochs, in which the rate stays high, are noisy.
    ///
    /// It starts from the initial weights and is updated on steps 1, 6, 11, …, with a decay of `1 - 1 / n` per step for `n` steps
    /// per epoch: 0.99 for batches of 512.
    pub fn ema(&self, n_rows: usize) -> Option<EmaConfig> {
        match self.rates {
            Rates::Page { is_averaged: true, .. } => {
                let kept = (1.0 - 1.0 / self.epoch_steps(n_rows).max(2) as f64).powi(AVERAGE_STEPS as i32);
                Some(EmaConfig::new(kept as f32).every(AVERAGE_STEPS).from_initial())
            }
            Rates::Page { .. } | Rates::Airbench { .. } | Rates::Muon { .. } => None,
        }
    }

    /// The number of steps in which [`Rates::Muon`] trains the whitening bias, in a run over `n_rows` images: three eighths of
    /// all.
    pub fn whitening_steps(&self, n_rows: usize) -> usize {
        (self.n_steps(n_rows) * 3).div_ceil(8)
    }
}

/// The fewest images per batch that are trained with the recipe's full rates.
const FULL_RATE_ROWS: usize = 64;
/// The number of epochs in which [`Rates::Airbench`] trains the whitening bias.
const WHITENING_EPOCHS: usize = 3;
/// Steps between two updates of the slow weights of [`Rates::Airbench`].
const LOOKAHEAD_STEPS: usize = 5;
/// Steps between two updates of the average of [`Rates::Page`].
const AVERAGE_STEPS: u32 = 5;

impl Module for Network {
    #[track_caller]
    fn forward(&self, params: &Bound, x: &Tensor) -> Tensor {
        match self {
            Self::ResNet9(network) => network.forward(params, x),
            Self::Airbench(network) => network.forward(params, x),
        }
    }

    fn n_inputs(&self) -> Option<usize> {
        match self {
            Self::ResNet9(network) => network.n_inputs(),
            Self::Airbench(network) => network.n_inputs(),
        }
    }
}

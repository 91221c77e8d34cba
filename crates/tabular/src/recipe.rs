use brisk_loader::{Layout, RowSource, Rows};
use brisk_nn::tensor::Error;
use brisk_nn::tensor::program::Device;
use brisk_nn::{
    Adam, Adapters, CombinedOptimizer, Entry, Muon, MuonScale, NumberEmbedding, Optimizer, ParameterGroup, Parameters, Philox,
    RealMlp, Schedule, SmoothClip, Steps, WeightDecay,
};
use brisk_train::{EarlyStopping, GradientClip, Trainer};

use crate::network::Network;
use crate::target::Target;

/// How much time a model of a table may take to train.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash)]
pub enum Effort {
    /// About half a minute for a table of 20,000 rows on two cores: a TabM-mini of 16 members, and a linear model, which has a
    /// share in the predictions if they are better for it.
    Quick,
    /// Some minutes: four ensembles, with bins and with waves as embeddings of the numbers, of which one has more bins and one is
    /// wider, and a linear model. Which of them overfits, or is not finished, depends on the table, and their errors differ, so
    /// the model has those that predict validation rows best together.
    #[default]
    Good,
    /// Up to seven times that: the networks of [`Good`](Self::Good), an ensemble of four RealMLPs and others with settings
    /// that are drawn, of which those are kept that predict validation rows best together.
    Best,
}

/// The steps of a recipe whose learning rate is annealed.
const SHORT: usize = 1_600;
const LONG: usize = 4_500;

/// Bins of a column of numbers.
const FEW_BINS: usize = 48;
const MANY_BINS: usize = 128;

/// Categories with larger embeddings are overfitted.
const CATEGORY_DIM: usize = 8;

/// The networks that [`Effort::Best`] trains besides those of [`Effort::Good`] unless its time ends before.
const N_DRAWN: u64 = 8;

/// Fewer rows are trained on in folds, by narrower networks.
const FEW_ROWS: usize = 4000;

/// The most features of rows that an ensemble is trained on.
const MAX_FEATURES: usize = 2048;

impl Effort {
    /// The recipes of the networks to train, for training rows that are [preprocessed](crate::Preprocessing::over). For rows of
    /// more than 2,048 features, whose embeddings would take minutes however few rows there are, the ensembles are one
    /// multi-layer perceptron.
    pub fn recipes(self, rows: &Rows, target: &Target, seed: u64) -> Vec<Recipe> {
        if rows.n_cols() > MAX_FEATURES {
            let network = Network::Mlp { hidden: vec![256, 128] };
            let one = Recipe { monitor: log_loss_of(target), ..Recipe::of_one(network, rows.n_rows()) };
            return vec![one, Recipe::linear(rows, target)];
        }
        let of_kind = n_steps(target);
        let waves = NumberEmbedding::Periodic { n_frequencies: 32, std: 0.5, dim: 16 };
        match self {
            // The first network is trained however short the time is.
            Self::Quick => vec![Recipe::quick(rows, target), Recipe::linear(rows, target)],
            Self::Good => {
                let networks = [
                    Recipe::of_width(256, piecewise_linear(rows, MANY_BINS, 16), rows, target, LONG),
                    Recipe::of_width(256, waves, rows, target, of_kind),
                    Recipe::of_width(384, piecewise_linear(rows, FEW_BINS, 8), rows, target, of_kind),
                ];
                Self::Quick.recipes(rows, target, seed).into_iter().chain(networks).collect()
            }
            Self::Best => {
                let drawn = (0..N_DRAWN).map(|i| Recipe::drawn(rows, target, seed, i));
                let real_mlp = std::iter::once(Recipe::real_mlp(rows, target));
                Self::Good.recipes(rows, target, seed).into_iter().chain(real_mlp).chain(drawn).collect()
            }
        }
    }

    /// How many [folds](crate::Fitting::fit_folds) pay for so many rows that are not tested: 5 for fewer than 4,000, of which a
    /// part would not show well enough which network is good, and each of which is worth training on; 1, which is none, for
    /// others.
    pub fn n_folds(n_rows: usize) -> usize {
        if n_rows < FEW_ROWS { 5 } else { 1 }
    }
}

/// A network and how it is trained.
#[derive(Debug, Clone, PartialEq)]
pub struct Recipe {
    /// The network.
    pub network: Network,
    /// Rows per batch.
    pub batch_rows: usize,
    /// The learning rate of AdamW, or the first one if it is annealed.
    pub lr: f64,
    /// Whether the rate falls to 0 along half a cosine in `max_epochs`.
    pub is_annealed: bool,
    /// The weight decay of AdamW.
    pub weight_decay: f32,
    /// The learning rate of [`Muon`] for the weights of hidden layers that the members of an ensemble share, as a multiple of
    /// `lr`; `None` if AdamW trains them, too.
    pub muon: Option<f32>,
    /// The largest norm of the gradients, to which larger ones are scaled down; `None` for gradients as they are.
    pub clip_norm: Option<f32>,
    /// The maximum number of epochs.
    pub max_epochs: usize,
    /// Epochs without a better validation score after which training ends.
    pub patience: usize,
    /// The validation score, such as `valid_log_loss`; `None` for the one that the task watches.
    pub monitor: Option<String>,
}

impl Recipe {
    /// That of [`Effort::Quick`].
    pub fn quick(rows: &Rows, target: &Target) -> Self {
        Self::of_width(256, piecewise_linear(rows, FEW_BINS, 8), rows, target, n_steps(target))
    }

    /// That of an ensemble with two hidden layers.
    fn of_width(width: usize, numbers: NumberEmbedding, rows: &Rows, target: &Target, n_steps: usize) -> Self {
        // Numbers are overfitted less.
        let dropout = match target.classes() {
            [] => 0.05,
            _ if rows.n_rows() < FEW_ROWS => 0.2,
            _ => 0.1,
        };
        let hidden = vec![width_for(rows, width); 2];
        Self::annealed(tab_m(Adapters::First, 16, hidden, dropout, numbers, CATEGORY_DIM), rows, target, n_steps)
    }

    /// Trains for about `n_steps` with a learning rate that is high at first and 0 at last. Steps matter rather than epochs, so
    /// that batches are small and few rows are seen often.
    fn annealed(network: Network, rows: &Rows, target: &Target, n_steps: usize) -> Self {
        let batch_rows = batch_rows(rows.n_rows(), 128, 64, 1024);
        let most = if target.classes().is_empty() { 100 } else { 50 };
        let recipe = Self::of_steps(network, target, rows.n_rows(), batch_rows, n_steps, most);
        let patience = recipe.max_epochs.div_ceil(2);
        Self { lr: 1e-2, weight_decay: 3e-4, muon: Some(2.0), clip_norm: Some(1.0), patience, ..recipe }
    }

    /// Trains for about `n_steps`, in 6 to `most` epochs, with a learning rate that changes until the last.
    fn of_steps(network: Network, target: &Target, n_rows: usize, batch_rows: usize, n_steps: usize, most: usize) -> Self {
        let max_epochs = (n_steps * batch_rows / n_rows.max(1)).clamp(6, most);
        let (is_annealed, monitor, patience) = (true, log_loss_of(target), max_epochs);
        Self { batch_rows, is_annealed, max_epochs, patience, monitor, ..Self::of_one(network, n_rows) }
    }

    /// A recipe like [`good`](Self::good), whose learning rate, weight decay, dropout, depth, width, embeddings and kind of
    /// ensemble are drawn: recipe `index` of those of `seed`.
    pub(crate) fn drawn(rows: &Rows, target: &Target, seed: u64, index: u64) -> Self {
        let philox = Philox::new(seed);
        let uniform = |stream: u32| f64::from(philox.uniform(0x7ab1_0000 + stream, index));
        let one_of =
            |stream: u32, values: &[usize]| values[((uniform(stream) * values.len() as f64) as usize).min(values.len() - 1)];
        let logarithmic = |stream: u32, from: f64, to: f64| from * (to / from).powf(uniform(stream));
        let adapters = if uniform(0) < 0.5 { Adapters::First } else { Adapters::All };
        let hidden = vec![width_for(rows, one_of(1, &[192, 256, 384])); one_of(2, &[1, 2, 3])];
        let dim = one_of(3, &[8, 16, 24]);
        let numbers = if uniform(10) < 0.7 {
            piecewise_linear(rows, one_of(4, &[16, 48, 128, 256]), dim)
        } else {
            NumberEmbedding::Periodic { n_frequencies: one_of(4, &[16, 24, 32, 48]), std: logarithmic(11, 0.3, 3.0) as f32, dim }
        };
        let dropout = if uniform(5) < 0.3 { 0.0 } else { (0.2 * uniform(6)) as f32 };
        let network = tab_m(adapters, 16, hidden, dropout, numbers, one_of(13, &[4, 8, 16]));
        Self {
            lr: logarithmic(7, 4e-3, 2e-2),
            weight_decay: if uniform(8) < 0.3 { 0.0 } else { logarithmic(9, 1e-4, 1e-1) as f32 },
            muon: Some(logarithmic(14, 0.7, 5.0) as f32),
            ..Self::annealed(network, rows, target, logarithmic(12, SHORT as f64, LONG as f64) as usize)
        }
    }

    /// That of RealMLP with the settings of its authors, except that several are an ensemble, that they train for fewer epochs,
    /// and that labels are not smoothed, since probabilities are to be right.
    ///
    /// # Reference
    /// Holzmüller, Grinsztajn & Steinwart 2024, arXiv:2407.04491.
    pub fn real_mlp(rows: &Rows, target: &Target) -> Self {
        const MAX_STEPS: usize = 20_000;
        let network = Network::RealMlp {
            n_members: 4,
            hidden: vec![256; 3],
            dropout: 0.15,
            scaling: SmoothClip::of_rows(rows.features(), rows.n_cols()),
            numbers: NumberEmbedding::Pbld { n_frequencies: 16, std: 0.1, dim: 4 },
            category_dim: CATEGORY_DIM,
        };
        let batch_rows = 256.min((rows.n_rows() / 2).max(1));
        let lr = if target.classes().is_empty() { 0.2 } else { 0.04 };
        // The rate rises again in each of the cycles, so that training does not end before the last.
        Self { lr, weight_decay: 0.02, ..Self::of_steps(network, target, rows.n_rows(), batch_rows, MAX_STEPS, 100) }
    }

    /// That of a linear model, of the numbers and of the embeddings of categories.
    pub fn linear<S: RowSource>(rows: &S, target: &Target) -> Self {
        const MAX_STEPS: usize = 10_000;
        // With more features, the steps of all weights together would move a prediction too far.
        const MAX_FEATURES: f64 = 100.0;
        let Layout { n_rows, n_cols, .. } = rows.layout();
        let network = Network::Mlp { hidden: Vec::new() };
        let recipe = Self::of_steps(network, target, n_rows, batch_rows(n_rows, 400, 32, 1024), MAX_STEPS, 30);
        Self { lr: 1e-2 * (MAX_FEATURES / n_cols as f64).min(1.0), weight_decay: 0.0, ..recipe }
    }

    /// Whether the network is a linear model.
    pub fn is_linear(&self) -> bool {
        matches!(&self.network, Network::Mlp { hidden } if hidden.is_empty())
    }

    /// About how long it takes to train, as a share of the time of a recipe of an ensemble.
    pub fn cost(&self) -> f64 {
        match self.network {
            _ if self.is_linear() => 0.05,
            // Its members share no hidden layers.
            Network::RealMlp { .. } => 2.0,
            _ => 1.0,
        }
    }

    /// The settings of a multi-layer perceptron or a residual network.
    pub fn of_one(network: Network, n_rows: usize) -> Self {
        let batch_rows = batch_rows(n_rows, 400, 32, 1024);
        Self {
            network,
            batch_rows,
            lr: 1e-3,
            is_annealed: false,
            weight_decay: 0.01,
            muon: None,
            clip_norm: None,
            max_epochs: 100,
            patience: 10,
            monitor: None,
        }
    }

    /// A trainer with these settings.
    pub fn trainer(&self, device: &Device) -> Trainer<'static> {
        let early_stopping = EarlyStopping { monitor: self.monitor.clone(), ..EarlyStopping::default() };
        let schedule = match self.lr {
            lr if self.is_annealed && self.is_real_mlp() => Schedule::CosLog { lr, n_cycles: 4 },
            lr if self.is_annealed => Schedule::CosineAnnealing { lr, t_max: Steps::Share(1.0), eta_min: 0.0 },
            lr => Schedule::Constant { lr },
        };
        let recipe = self.clone();
        let trainer = Trainer::new(device)
            .batch_rows(self.batch_rows)
            .max_epochs(self.max_epochs)
            .schedule(schedule)
            .try_optimizer(move |params| recipe.optimizer(params))
            .early_stopping(early_stopping.patience(self.patience));
        match self.clip_norm {
            Some(norm) => trainer.clip(GradientClip::Norm(norm)),
            None => trainer,
        }
    }

    fn is_real_mlp(&self) -> bool {
        matches!(self.network, Network::RealMlp { .. })
    }

    fn optimizer(&self, params: &Parameters) -> Result<Box<dyn Optimizer>, Error> {
        let adam = Adam::new(params).weight_decay(WeightDecay::Decoupled(self.weight_decay));
        if self.is_real_mlp() {
            return Ok(Box::new(adam.betas(0.9, 0.95).groups(params, &RealMlp::groups(params, self.weight_decay))?));
        }
        let is_shared = |entry: &Entry| entry.name.starts_with("hidden.") && entry.name.ends_with(".weight");
        let shared = params.ids_where(is_shared);
        let Some(lr_factor) = self.muon.filter(|_| !shared.is_empty()) else { return Ok(Box::new(adam)) };
        let rest = ParameterGroup::new(params.ids_where(|entry| !is_shared(entry)));
        let muon = Muon::new(params, &shared)?.scale(MuonScale::MatchRmsAdamw).lr_factor(lr_factor).weight_decay(MUON_DECAY);
        Ok(Box::new(CombinedOptimizer::new().and(muon).and(adam.groups(params, &[rest])?)))
    }
}

/// The weight decay of matrices that [`Muon`] trains.
const MUON_DECAY: f32 = 0.05;

/// The steps of a recipe whose learning rate is annealed: classes are learned, and soon overfitted, in fewer than numbers.
fn n_steps(target: &Target) -> usize {
    if target.classes().is_empty() { 3_000 } else { SHORT }
}

/// The width of hidden layers: half of it for few rows, whose errors are as small with a quarter of the time.
fn width_for(rows: &Rows, width: usize) -> usize {
    if rows.n_rows() < FEW_ROWS { width / 2 } else { width }
}

/// What is watched of classes: the area under the curve and the accuracy stop improving while probabilities still do.
fn log_loss_of(target: &Target) -> Option<String> {
    (!target.classes().is_empty()).then(|| "valid_log_loss".to_owned())
}

fn tab_m(
    adapters: Adapters,
    n_members: usize,
    hidden: Vec<usize>,
    dropout: f32,
    numbers: NumberEmbedding,
    category_dim: usize,
) -> Network {
    Network::TabM { n_members, adapters, hidden, dropout, numbers, category_dim }
}

fn piecewise_linear(rows: &Rows, n_bins: usize, dim: usize) -> NumberEmbedding {
    NumberEmbedding::PiecewiseLinear { edges: Network::quantile_edges(rows, n_bins), dim }
}

/// A power of two about a `share`th of the rows, from `least` to `most`; at most half of the rows, which a fold may be.
fn batch_rows(n_rows: usize, share: usize, least: usize, most: usize) -> usize {
    (n_rows / share).next_power_of_two().clamp(least, most).min((n_rows / 2).max(1))
}

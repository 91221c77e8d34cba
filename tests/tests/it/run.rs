//! A small training run: rows in memory, an `Mlp`, Adam.

use std::io;
use std::path::Path;
use std::sync::{Arc, Mutex};
use std::time::SystemTime;

use brisk_loader::{Layout, RowBuffers, RowSelection, RowSource, Rows};
use brisk_nn::{Activation, Adam, Mlp, MlpConfig, Parameters, ParametersBuilder, Schedule};
use brisk_program::Device;
use brisk_train::{
    Binary, DataParallel, Error, FitReport, Outputs, Progress, RunFolder, Trainable, Trainer, TrainerConfig, Training,
};

pub(crate) const N_COLS: usize = 5;

/// The settings of a run; [`Setting::default`] is one that learns.
#[derive(Clone, Debug)]
pub(crate) struct Setting {
    pub(crate) n_rows: usize,
    pub(crate) n_valid: usize,
    pub(crate) hidden: Vec<usize>,
    /// The seed of weights and of the order; the rows are the same for all.
    pub(crate) seed: u64,
    pub(crate) config: TrainerConfig,
}

impl Default for Setting {
    fn default() -> Self {
        let schedule = Schedule::Constant { lr: 3e-3 };
        let config = TrainerConfig { batch_rows: 64, max_epochs: 3, schedule, seed: 1, ..TrainerConfig::default() };
        Self { n_rows: 500, n_valid: 200, hidden: vec![24], seed: 1, config }
    }
}

/// A run that has been set up: the values that a trainer borrows.
pub(crate) struct Ready {
    pub(crate) model: Mlp,
    pub(crate) params: Parameters,
    pub(crate) adam: Adam,
    pub(crate) train: Rows,
    pub(crate) valid: Rows,
    config: TrainerConfig,
}

impl Setting {
    pub(crate) fn ready(&self) -> Ready {
        let mut builder = ParametersBuilder::new();
        let sizes = MlpConfig { n_inputs: N_COLS, hidden: self.hidden.clone(), n_outputs: 1, activation: Activation::relu() };
        let model = Mlp::new(&mut builder, &sizes);
        let params = builder.build(self.seed);
        let adam = Adam::new(&params);
        let (train, valid) = (rows(0, self.n_rows), rows(self.n_rows, self.n_valid));
        let config = TrainerConfig { seed: self.seed, ..self.config.clone() };
        Ready { model, params, adam, train, valid, config }
    }
}

impl Ready {
    pub(crate) fn config(&self) -> TrainerConfig {
        self.config.clone()
    }

    /// The same with the part that a replica keeps.
    pub(crate) fn sharded(self, replica: &DataParallel) -> Result<Self, Error> {
        let params = replica.shard_parameters(self.params)?;
        let adam = Adam::new(&params);
        Ok(Self { params, adam, ..self })
    }

    pub(crate) fn trainer(&self, device: &Device) -> Result<Training<'_>, Error> {
        let Self { model, params, adam, train, valid, config } = self;
        Trainer::new(device).config(config.clone()).prepare(Trainable::new(model, params, adam), &Binary::new(), train, valid)
    }

    /// The same as one of several replicas.
    pub(crate) fn on_replica<'r>(&'r self, device: &Device, replica: &'r DataParallel) -> Result<Training<'r>, Error> {
        let Self { model, params, adam, train, valid, config } = self;
        let trainer = Trainer::new(device).config(config.clone()).replicas(replica);
        trainer.prepare(Trainable::new(model, params, adam), &Binary::new(), train, valid)
    }

    /// Fits without writing files; returns the report and the parameters.
    pub(crate) fn fit(&self, device: &Device) -> Result<(FitReport, Vec<f32>), Error> {
        let report = self.trainer(device)?.fit(&mut quiet())?;
        Ok((report, device.read(self.params.values())?))
    }
}

/// Two classes that a network can separate better than a linear model can, though not perfectly. Columns have different means and
/// scales.
pub(crate) fn rows(first: usize, n: usize) -> Rows {
    let (mut features, mut labels) = (Vec::with_capacity(n * N_COLS), Vec::with_capacity(n));
    for row in first..first + n {
        let x: [f32; N_COLS] = std::array::from_fn(|col| noise(row, col));
        let score = x[0] + 2.0 * x[1] * x[2] - x[3] * x[3] + 0.5 * noise(row, N_COLS) + 0.3;
        labels.push(f32::from(u8::from(score > 0.0)));
        features
            .extend(x.iter().zip([(0.0, 1.0), (5.0, 0.1), (-3.0, 20.0), (1e3, 1.0), (0.5, 1e-3)]).map(|(x, (m, s))| m + s * x));
    }
    Rows::new(features, labels, N_COLS).expect("as many labels as rows")
}

/// Rows before whose gathering a function is called, which may fail.
pub(crate) struct Before<S, F: Fn(&RowSelection<'_>) -> Result<(), brisk_loader::Error>>(pub(crate) S, pub(crate) F);

impl<S, F> RowSource for Before<S, F>
where
    S: RowSource<Error = brisk_loader::Error>,
    F: Fn(&RowSelection<'_>) -> Result<(), brisk_loader::Error> + Sync,
{
    type Feature = S::Feature;
    type Error = brisk_loader::Error;

    fn layout(&self) -> Layout {
        self.0.layout()
    }

    fn gather(&self, rows: RowSelection<'_>, into: RowBuffers<'_, S::Feature>) -> Result<(), Self::Error> {
        (self.1)(&rows)?;
        self.0.gather(rows, into)
    }
}

/// Rows with weights, which may be ones that `Rows` refuses.
pub(crate) struct Weighted {
    pub(crate) rows: Rows,
    pub(crate) weights: Vec<f32>,
}

impl RowSource for Weighted {
    type Feature = f32;
    type Error = brisk_loader::Error;

    fn layout(&self) -> Layout {
        Layout { has_weights: true, ..self.rows.layout() }
    }

    fn gather(&self, rows: RowSelection<'_>, into: RowBuffers<'_, f32>) -> Result<(), Self::Error> {
        let RowBuffers { features, labels, categories, weights } = into;
        if let Some(weights) = weights {
            rows.for_each_block(|at, rows| {
                weights[at..].iter_mut().zip(rows).for_each(|(weight, &row)| *weight = self.weights[row as usize]);
                Ok(())
            })?;
        }
        self.rows.gather(rows, RowBuffers { features, labels, categories, weights: None })
    }
}

/// Uniform in -1..1, a pure function of the index.
pub(crate) fn noise(row: usize, col: usize) -> f32 {
    let z = (row as u64 * 64 + col as u64).wrapping_mul(0x9E37_79B9_7F4A_7C15);
    let z = (z ^ z >> 30).wrapping_mul(0xBF58_476D_1CE4_E5B9);
    let z = (z ^ z >> 27).wrapping_mul(0x94D0_49BB_1331_11EB);
    ((z ^ z >> 31) >> 40) as f32 / (1 << 23) as f32 - 1.0
}

/// Mean training loss and validation AUC of each epoch.
pub(crate) fn history(report: &FitReport) -> Vec<(f64, f64)> {
    report.history.iter().map(|epoch| (epoch.train_loss(), epoch.get("valid_auc").expect("the task has it"))).collect()
}

pub(crate) fn quiet() -> Outputs<'static> {
    Outputs::default()
}

/// Checkpoints and log below `root`.
pub(crate) fn into_folder(root: &Path) -> (Outputs<'static>, RunFolder) {
    let folder = RunFolder::create(root, Some("test"), SystemTime::UNIX_EPOCH).expect("the folder can be made");
    (Outputs { folder: Some(folder.clone()), ..quiet() }, folder)
}

/// A progress that calls `f` after each epoch.
pub(crate) fn after_each_epoch(f: impl FnMut() + Send + 'static) -> Progress {
    struct Writer<F>(Arc<Mutex<F>>);
    impl<F: FnMut()> io::Write for Writer<F> {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            if bytes.contains(&b'\n') {
                (self.0.lock().expect("no other call has panicked"))();
            }
            Ok(bytes.len())
        }
        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }
    Progress::lines(0, 0, Writer(Arc::new(Mutex::new(f))))
}

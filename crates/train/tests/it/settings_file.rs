//! Settings from TOML.

use std::time::Duration;

use brisk_nn::tensor::Precision;
use brisk_nn::{AdamConfig, EmaConfig, Momentum, MuonConfig, MuonScale, NAdamConfig, OptimizerConfig, Schedule, SgdConfig};
use brisk_train::metrics::Direction;
use brisk_train::{
    BatchStatistics, BucketSizes, DataParallelConfig, EarlyStopping, Error, GradientClip, Limit, ReduceLrOnPlateau, RunSettings,
    ThresholdMode, TrainerConfig, ValidationInterval, Wire, ZeroStage,
};

#[test]
fn every_setting_is_read() -> Result<(), Error> {
    let found = TrainerConfig::from_toml(
        r#"
        batch_rows = 1024
        accumulate = 4
        precision = "bf16"
        max_epochs = 30
        max_steps = 1000
        max_time = "01:02:03:04"
        min_epochs = 2
        validate_every = 3
        validate_within_epoch = 0.25
        limit_train_batches = 0.5
        drop_last = true
        limit_valid_batches = 8
        sanity_validation = 2
        clip = { norm = 1 }
        optimizer = { name = "sgd", momentum = 0.9, form = "nesterov" }
        seed = 9
        checkpoint_every = 100
        checkpoint_interval = 600
        checkpoint_on_error = true
        keep_best = 3
        detect_anomaly = true
        extend = true
        record_grad_norms = true
        profile_batches = 5
        max_skipped = 7

        [schedule]
        name = "cosine"
        lr = 0.1
        warmup = 0.05

        [reduce_lr_on_plateau]
        monitor = "valid_loss"
        mode = "min"
        factor = 0.5
        patience = 4
        threshold = 0.01
        threshold_mode = "abs"
        cooldown = 2
        min_lr = 1e-5
        eps = 1e-7

        [ema]
        decay = 0.75
        every = 5
        first_step = 2
        start = "initial"

        [early_stopping]
        monitor = "valid_loss"
        mode = "min"
        patience = 4
        min_delta = 0.01
        stopping_threshold = 0.1
        divergence_threshold = 9.0
        check_finite = false

        [scaler]
        enabled = true
        init_scale = 1024.0
        growth_factor = 4.0
        backoff_factor = 0.25
        growth_interval = 100
        "#,
    )?;
    let default = TrainerConfig::default();
    let early_stopping =
        EarlyStopping { monitor: Some("valid_loss".to_owned()), check_finite: false, ..EarlyStopping::new(Direction::Minimize) };
    let early_stopping = early_stopping.patience(4).min_delta(0.01).stopping_threshold(0.1).divergence_threshold(9.0);
    let mut plateau = ReduceLrOnPlateau { eps: 1e-7, ..ReduceLrOnPlateau::on("valid_loss") };
    plateau.direction = Some(Direction::Minimize);
    let plateau = plateau.factor(0.5).patience(4).threshold(0.01, ThresholdMode::Absolute).cooldown(2).min_lr(1e-5);
    let mut scaler = default.scaler;
    (scaler.init_scale, scaler.growth_factor, scaler.backoff_factor, scaler.growth_interval) = (1024.0, 4.0, 0.25, 100);
    let expected = TrainerConfig {
        batch_rows: 1024,
        accumulate: 4,
        precision: Precision::Bf16,
        max_epochs: 30,
        max_steps: Some(1000),
        max_time: Some(Duration::from_secs(((24 + 2) * 60 + 3) * 60 + 4)),
        min_epochs: 2,
        validate_every: 3,
        validate_within_epoch: Some(ValidationInterval::Share(0.25)),
        limit_train_batches: Some(Limit::Share(0.5)),
        drop_last: true,
        limit_valid_batches: Some(Limit::Batches(8)),
        sanity_validation: 2,
        clip: Some(GradientClip::Norm(1.0)),
        optimizer: Some(OptimizerConfig::Sgd(SgdConfig {
            momentum: 0.9,
            form: Momentum::Nesterov,
            weight_decay: 0.0,
            dampening: 0.0,
        })),
        seed: 9,
        checkpoint_every: 100,
        checkpoint_interval: Some(Duration::from_secs(600)),
        checkpoint_on_error: true,
        keep_best: 3,
        detect_anomaly: true,
        extend: true,
        record_grad_norms: true,
        profile_batches: 5,
        max_skipped: 7,
        schedule: Schedule::cosine(0.1).warmup(0.05),
        reduce_lr_on_plateau: Some(plateau),
        ema: Some(EmaConfig::new(0.75).every(5).first_step(2).from_initial()),
        early_stopping: Some(early_stopping),
        scaler,
    };
    assert_eq!(found, expected);
    assert_eq!(TrainerConfig::from_toml("")?, default, "what is left out has its default");
    Ok(())
}

#[test]
fn mistakes_are_named() {
    const WHOLE: &str = "expected a whole number, 0 or more";
    for (text, line, facts) in [
        ("max_epoch = 3", 1, ["`max_epoch`", "did you mean `max_epochs`?"]),
        ("seed = 1\n[early_stopping]\npatence = 3", 3, ["`patence`", "did you mean `patience`?"]),
        ("max_epochs = \"3\"", 1, ["\"3\"", WHOLE]),
        ("max_epochs = -3", 1, ["-3", WHOLE]),
        ("drop_last = 1", 1, ["`1`", "expected true or false"]),
        ("precision = \"f64\"", 1, ["f64", "use f32, f16 or bf16"]),
        ("max_time = \"1h\"", 1, ["1h", "expected seconds, or \"DD:HH:MM:SS\""]),
        ("limit_valid_batches = true", 1, ["limit_valid_batches", "expected a number of batches, or a fraction such as 0.5"]),
        ("schedule = \"linear\"", 1, ["linear", "expected a learning rate, or a table"]),
        ("[schedule]\nname = \"cosine\"", 1, ["[schedule]", "missing field `lr`"]),
        ("[schedule]\nname = \"cosin\"\nlr = 1", 1, ["`cosin`", "did you mean `cosine`?"]),
        ("[schedule]\nname = \"cosine\"\nlr = 0.1\nwarm = 0.1", 1, ["[schedule]", "unknown field `warm`"]),
        ("[schedule]\nname = \"cosine\"\nlr = 0.1\nwarmup = \"a\"", 4, ["warmup", "expected a whole number of steps"]),
        ("[schedule]\nname = \"piecewise_linear\"\npoints = [1, 2]", 1, ["`1`", "expected a pair of a step and a rate"]),
        ("optimizer = { name = \"adamx\" }", 1, ["`adamx`", "did you mean `adam`?"]),
        ("optimizer = { name = \"adamw\", decay = 0.1 }", 1, ["unknown field `decay`", "`weight_decay`"]),
        ("optimizer = { name = \"muon\", scale = \"plan\" }", 1, ["`plan`", "did you mean `plain`?"]),
        ("clip = { norm = 1, value = 1 }", 1, ["clip", "value"]),
        ("max_epochs = = 3", 1, ["=", "expected"]),
    ] {
        match TrainerConfig::from_toml(text).expect_err(text) {
            Error::SettingsFile { line: Some((found, _)), .. } => assert_eq!(found, line, "{text}"),
            other => panic!("{text}: {other}"),
        }
        let error = TrainerConfig::from_toml(text).expect_err(text).to_string();
        assert!(facts.iter().all(|fact| error.contains(fact)), "{error}");
    }
    let error = TrainerConfig::from_toml("colour = 1").expect_err("no such setting").to_string();
    assert!(error.contains("`colour`") && !error.contains("did you mean"), "nothing is close: {error}");
    let error = TrainerConfig::from_toml("learning_rate = 0.1\n[schedule]\nname = \"linear\"\nlr = 0.1").expect_err("two");
    assert_eq!(error.to_string(), "settings: duplicate field `schedule`, which `learning_rate` sets, too");
    let error = TrainerConfig::load("no/such.toml").expect_err("no such file").to_string();
    assert!(error.starts_with("no/such.toml: cannot read the settings"), "{error}");
}

#[test]
fn muon_has_matrices_and_adamw_for_the_rest() -> Result<(), Error> {
    let text = r#"
        [optimizer]
        name = "muon"
        matrices = ["layers.1.weight", "layers.2.weight"]
        momentum = 0.9
        form = "heavy"
        weight_decay = 0.2
        scale = "match_rms_adamw"
        rest = { betas = [0.8, 0.99] }
        rest_lr_factor = 0.5
        "#;
    let expected = MuonConfig {
        matrices: ["layers.1.weight", "layers.2.weight"].map(String::from).into(),
        momentum: 0.9,
        form: Momentum::Heavy,
        weight_decay: 0.2,
        scale: MuonScale::MatchRmsAdamw,
        rest: AdamConfig { betas: [0.8, 0.99], ..AdamConfig::default() },
        rest_lr_factor: 0.5,
    };
    assert_eq!(TrainerConfig::from_toml(text)?.optimizer, Some(OptimizerConfig::Muon(expected)));
    let found = TrainerConfig::from_toml("optimizer = { name = \"muon\", matrices = [\"a\"] }")?.optimizer;
    assert_eq!(found, Some(OptimizerConfig::Muon(MuonConfig { matrices: vec!["a".to_owned()], ..MuonConfig::default() })));
    Ok(())
}

#[test]
fn optimizers_have_the_settings_of_pytorch() -> Result<(), Error> {
    let nadam = NAdamConfig { momentum_decay: 0.01, decoupled_weight_decay: true, ..NAdamConfig::default() };
    for (text, expected) in [
        ("{ name = \"nadam\", momentum_decay = 0.01, decoupled_weight_decay = true }", OptimizerConfig::NAdam(nadam)),
        ("{ name = \"adam\", amsgrad = true }", OptimizerConfig::Adam(AdamConfig { amsgrad: true, ..AdamConfig::default() })),
        (
            "{ name = \"sgd\", momentum = 0.5, dampening = 0.25 }",
            OptimizerConfig::Sgd(SgdConfig { momentum: 0.5, form: Momentum::Heavy, weight_decay: 0.0, dampening: 0.25 }),
        ),
    ] {
        assert_eq!(TrainerConfig::from_toml(&format!("optimizer = {text}"))?.optimizer, Some(expected));
    }
    Ok(())
}

#[test]
fn an_interval_of_validations_is_a_number_of_batches_or_a_share_of_the_epoch() -> Result<(), Error> {
    use ValidationInterval::{Batches, Share};

    let config = TrainerConfig::from_toml("validate_within_epoch = 500")?;
    assert_eq!(config.validate_within_epoch, Some(Batches(500)));
    for (interval, expected) in
        [(Share(0.25), 2), (Share(0.3), 2), (Share(0.01), 1), (Share(1.0), 8), (Batches(1), 1), (Batches(5), 5), (Batches(8), 8)]
    {
        assert_eq!(interval.of(8)?, expected, "{interval:?} of 8 batches");
    }
    for (interval, expected) in [
        (Batches(0), "found 0 batches, expected at least one batch"),
        (Batches(9), "found 9 batches of an epoch that has 8, expected at most the batches of an epoch; use `validate_every`"),
        (Share(0.0), "found 0, expected a share above 0 and at most 1"),
        (Share(1.5), "found 1.5, expected a share above 0 and at most 1"),
        (Share(f64::NAN), "found NaN, expected a share above 0 and at most 1"),
    ] {
        let error = interval.of(8).expect_err("no interval").to_string();
        assert!(error.starts_with("validate_within_epoch: ") && error.contains(expected), "{error}");
    }
    Ok(())
}

#[test]
fn a_file_has_the_settings_of_replicas_too() -> Result<(), Error> {
    let settings = RunSettings::from_toml(
        "max_epochs = 3\nreplicas = 4\n[data_parallel]\nzero = 3\nwire = \"bf16\"\nbatch_norm = \"of_all\"\nbuckets = { bytes = 4096 }",
    )?;
    let expected = DataParallelConfig {
        zero: ZeroStage::Parameters,
        wire: Wire::Bf16,
        batch_norm: BatchStatistics::OfAll,
        buckets: BucketSizes { bytes: 4096, ..BucketSizes::default() },
        ..DataParallelConfig::default()
    };
    assert_eq!((settings.trainer.max_epochs, settings.replicas.get(), settings.data_parallel), (3, 4, expected));
    let single = RunSettings::from_toml("")?;
    assert_eq!((single.replicas.get(), single.data_parallel), (1, DataParallelConfig::default()));

    for (text, facts) in [
        ("replicas = 0", ["`replicas = 0`", "expected at least 1"]),
        ("[data_parallel]\nzero = 4", ["`zero = 4`", "ZeRO has no stage 4, expected 0 to 3"]),
        ("[data_parallel]\nbatchnorm = \"of_all\"", ["line 2", "did you mean `batch_norm`?"]),
        ("[data_parallel]\nwire = \"f64\"", ["`f64`", "`f32`, `f16`, `bf16`"]),
        ("max_epoch = 3", ["`max_epoch`", "did you mean `max_epochs`?"]),
        ("max_epochs = -3", ["`max_epochs`", "expected a whole number, 0 or more"]),
    ] {
        let error = RunSettings::from_toml(text).expect_err(text).to_string();
        assert!(facts.iter().all(|fact| error.contains(fact)), "{error}");
    }
    Ok(())
}

#[test]
fn every_schedule_has_a_name() -> Result<(), Error> {
    for (text, expected) in [
        ("name = \"cosine_warm_restarts\"\nlr = 0.1\nt_0 = 50\nt_mult = 2", Schedule::cosine_warm_restarts(0.1, 50, 2)),
        ("name = \"multi_step\"\nlr = 0.1\nmilestones = [0.5, 0.75]", Schedule::multi_step(0.1, [0.5, 0.75], 0.1)),
        (
            "name = \"piecewise_linear\"\npoints = [[0.0, 0.0], [0.2, 0.4], [1.0, 0]]\nwarmup = 20",
            Schedule::piecewise_linear([(0.0, 0.0), (0.2, 0.4), (1.0, 0.0)]).warmup(20),
        ),
    ] {
        assert_eq!(TrainerConfig::from_toml(&format!("[schedule]\n{text}"))?.schedule, expected, "{text}");
    }
    let one_step = TrainerConfig::from_toml("[schedule]\nname = \"constant\"\nlr = 0.1\nwarmup = 1")?.schedule;
    assert_eq!(one_step, Schedule::constant(0.1).warmup(1), "one step, not all of the run");
    assert_eq!(TrainerConfig::from_toml("learning_rate = 0.1")?.schedule, Schedule::constant(0.1), "a rate");
    Ok(())
}

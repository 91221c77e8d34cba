use super::{Schedule, Steps};

/// The expected rates are those that PyTorch 2.15 printed, its optimizer's rate before each update.
#[track_caller]
fn check(schedule: Schedule, expected: &[f64]) {
    schedule.check(expected.len()).expect("valid settings");
    for (step, expected) in expected.iter().enumerate() {
        let rate = schedule.rate(step, usize::MAX);
        assert!((rate - expected).abs() <= 1e-12, "{schedule:?}: step {step} has rate {rate}, PyTorch has {expected}");
    }
}

#[track_caller]
fn one_cycle(max_lr: f64, pct_start: f64, [div_factor, final_div_factor]: [f64; 2], total_steps: usize, expected: &[f64]) {
    check(Schedule::OneCycle { max_lr, pct_start, div_factor, final_div_factor, total_steps: total_steps.into() }, expected);
}

#[test]
fn one_cycle_whose_top_is_a_step() {
    one_cycle(1.0, 0.4, [10.0, 100.0], 5, &[0.1, 1.0, 0.75025, 0.25075, 0.001]);
}

#[test]
fn one_cycle_whose_top_is_between_steps() {
    let expected = [
        0.016,
        0.304,
        0.3956295376286806,
        0.361803551661394,
        0.3000004,
        0.2209064090307601,
        0.13819764833860604,
        0.06617521403271352,
        0.017292439307845922,
        1.6e-06,
    ];
    one_cycle(0.4, 0.25, [25.0, 1e4], 10, &expected);
}

#[test]
fn one_cycle_whose_top_is_before_the_first_step() {
    one_cycle(0.4, 0.1, [25.0, 1e4], 4, &[0.37320518793656476, 0.23473029661484393, 0.07144379229277989, 1.6e-06]);
}

#[test]
fn one_cycle_that_only_goes_up() {
    one_cycle(1.0, 1.0, [25.0, 1e4], 3, &[0.04, 0.52, 1.0]);
}

#[test]
fn one_cycle_takes_the_length_of_the_run() {
    let schedule = Schedule::one_cycle(0.4);
    let of_ten =
        Schedule::OneCycle { max_lr: 0.4, pct_start: 0.3, div_factor: 25.0, final_div_factor: 1e4, total_steps: 10.into() };
    assert_eq!(schedule.table(0..10, 10), of_ten.table(0..10, 1000), "as if 10 had been given");
    assert_eq!(schedule.rate(10, 10), schedule.rate(9, 10), "one step past the end");
    assert_eq!(schedule.rate(usize::MAX, 10), schedule.rate(9, 10), "far past the end");
}

#[test]
fn cosine_annealing_comes_back_up() {
    let expected = [0.1, 0.0855017856687341, 0.0505, 0.0154982143312659, 0.001, 0.0154982143312659, 0.0505];
    check(Schedule::CosineAnnealing { lr: 0.1, t_max: 4.into(), eta_min: 1e-3 }, &expected);
}

#[test]
fn cosine_over_the_run() {
    let expected = [0.1, 0.09755282581475769, 0.09045084971874738, 0.07938926261462367, 0.06545084971874739];
    for (step, expected) in expected.into_iter().enumerate() {
        assert!((Schedule::cosine(0.1).rate(step, 10) - expected).abs() < 1e-15, "step {step}");
    }
}

#[test]
fn cosine_with_warm_restarts() {
    let growing = [
        0.1,
        0.07525000000000001,
        0.025750000000000012,
        0.1,
        0.09336825748732973,
        0.07525000000000001,
        0.0505,
        0.025750000000000012,
        0.007631742512670284,
        0.1,
        0.09831332840130888,
        0.09336825748732973,
    ];
    check(Schedule::CosineWarmRestarts { lr: 0.1, t_0: 3.into(), t_mult: 2, eta_min: 1e-3 }, &growing);
    let even = [0.1, 0.08535533905932738, 0.05, 0.014644660940672627, 0.1, 0.08535533905932738, 0.05, 0.014644660940672627, 0.1];
    check(Schedule::cosine_warm_restarts(0.1, 4, 1), &even);
}

#[test]
fn step_multiplies() {
    check(Schedule::step(0.1, 3, 0.3), &[0.1, 0.1, 0.1, 0.03, 0.03, 0.03, 0.009, 0.009]);
}

#[test]
fn milestones_multiply() {
    check(Schedule::multi_step(0.1, [2, 5, 6], 0.3), &[0.1, 0.1, 0.03, 0.03, 0.03, 0.009, 0.0027, 0.0027, 0.0027]);
}

#[test]
fn polynomial_ends_at_zero() {
    let squared = [0.1, 0.06944444444444446, 0.04444444444444447, 0.025, 0.011111111111111117, 0.0027777777777777775, 0.0, 0.0];
    check(Schedule::Polynomial { lr: 0.1, total_iters: 6.into(), power: 2.0 }, &squared);
    let root = [0.1, 0.08660254037844387, 0.07071067811865475, 0.05, 0.0, 0.0];
    check(Schedule::Polynomial { lr: 0.1, total_iters: 4.into(), power: 0.5 }, &root);
    assert_eq!(Schedule::linear(0.1).table(0..5, 4), [0.1, 0.075, 0.05, 0.025, 0.0], "over the run");
}

#[test]
fn exponential_multiplies_every_step() {
    check(Schedule::exponential(0.1, 0.8), &[0.1, 0.08, 0.064, 0.0512, 0.04096, 0.032768]);
}

/// `LinearLR` up to step 4 and another one down, in a `SequentialLR`.
#[test]
fn piecewise_linear() {
    let expected = [0.01, 0.0325, 0.055, 0.0775, 0.1, 0.085, 0.07, 0.055, 0.04, 0.025, 0.025, 0.025];
    check(Schedule::piecewise_linear([(0, 0.01), (4, 0.1), (9, 0.025)]), &expected);
    let late = Schedule::piecewise_linear([(0.25, 0.2), (0.5, 0.0)]);
    assert_eq!(late.table(0..10, 16), [0.2, 0.2, 0.2, 0.2, 0.2, 0.15, 0.1, 0.05, 0.0, 0.0], "shares of the run");
}

#[test]
fn warmup_comes_before_any() {
    let expected = [
        0.02,
        0.04,
        0.06,
        0.08,
        0.1,
        0.09336825748732973,
        0.07525000000000001,
        0.0505,
        0.025750000000000012,
        0.007631742512670284,
        0.001,
        0.007631742512670284,
    ];
    check(Schedule::CosineAnnealing { lr: 0.1, t_max: 6.into(), eta_min: 1e-3 }.warmup(4), &expected);
    check(Schedule::step(0.1, 2, 0.5).warmup(3), &[0.025, 0.05, 0.075, 0.1, 0.1, 0.05, 0.05, 0.025, 0.025]);
    let shares = Schedule::cosine(0.1).warmup(0.2);
    assert_eq!(shares.rate(2, 10), 0.1, "a fifth of the run is over");
    assert_eq!(shares.rate(10, 10), 0.0, "the cosine takes the rest");
    assert_eq!(Schedule::constant(0.1).warmup(0).rate(0, 10), 0.1, "no warm-up");
}

#[test]
fn a_function_gives_the_rate() {
    check(Schedule::from_fn(|step, _| 0.1 / (1 + step) as f64), &[0.1, 0.05, 0.1 / 3.0, 0.025, 0.02]);
    let schedule = Schedule::from_fn(|step, total| (total - step) as f64);
    assert_eq!(schedule.rate(2, 10), 8.0, "the steps of the run");
    assert_eq!(schedule, schedule.clone(), "a clone");
    assert_ne!(schedule, Schedule::from_fn(|step, total| (total - step) as f64), "another function");
}

#[test]
fn cycles_of_cosines_double_in_length() {
    let schedule = Schedule::CosLog { lr: 0.2, n_cycles: 4 };
    // Cycles end at 1/15, 3/15, 7/15 and 15/15 of the run; the rates in between are those of `pytabkit` 1.7.
    let expected =
        [(0, 0.0), (20, 0.0), (60, 0.0), (140, 0.0), (300, 0.0), (10, 0.186_086_19), (30, 0.143_670_94), (220, 0.186_086_19)];
    for (step, expected) in expected {
        let rate = schedule.rate(step, 300);
        assert!((rate - expected).abs() < 1e-7, "step {step}: {rate}, expected {expected}");
    }
}

#[test]
fn short_runs_give_finite_rates() {
    for total_steps in [0, 1, 2] {
        for schedule in [
            Schedule::one_cycle(0.4),
            Schedule::cosine(0.1),
            Schedule::cosine_warm_restarts(0.1, 0.1, 2),
            Schedule::step(0.1, 0.1, 0.5),
            Schedule::multi_step(0.1, [0.5, 0.6], 0.5),
            Schedule::piecewise_linear([(0.4, 0.1), (0.45, 1.0)]),
            Schedule::linear(0.1).warmup(0.05),
            Schedule::CosLog { lr: 0.1, n_cycles: 4 },
        ] {
            schedule.check(total_steps).expect("valid settings");
            assert!(schedule.table(0..4, total_steps).iter().all(|rate| rate.is_finite()), "{schedule:?}");
        }
    }
}

#[test]
fn a_table_has_the_rates_of_its_steps() {
    let schedule = Schedule::one_cycle(0.4);
    let rates: Vec<f32> = (3..7).map(|step| schedule.rate(step, 10) as f32).collect();
    assert_eq!(schedule.table(3..7, 10), rates, "steps 3 to 6");
    assert_eq!(Schedule::constant(0.25).table(5..8, 10), [0.25; 3], "a constant");
}

#[track_caller]
fn refused(schedule: Schedule, expected: &str) {
    let error = schedule.check(100).expect_err("settings that make no sense");
    assert_eq!(error.to_string(), format!("schedule: {expected}"), "{schedule:?}");
}

#[test]
fn settings_that_make_no_sense_are_refused() {
    const RATE: &str = "expected a finite number that is not negative";
    const FACTOR: &str = "expected a finite number above 0";
    refused(Schedule::CosLog { lr: 0.1, n_cycles: 0 }, "`n_cycles` is 0, expected between 1 and 32 cycles");
    refused(Schedule::constant(-0.1), &format!("`lr` is -0.1, {RATE}"));
    refused(Schedule::constant(f64::NAN), &format!("`lr` is NaN, {RATE}"));
    refused(Schedule::one_cycle(f64::INFINITY), &format!("`max_lr` is inf, {RATE}"));
    let one_cycle = |pct_start, div_factor, total_steps| Schedule::OneCycle {
        max_lr: 0.1,
        pct_start,
        div_factor,
        final_div_factor: 1e4,
        total_steps,
    };
    refused(one_cycle(30.0, 25.0, Steps::ALL), "`pct_start` is 30, expected a number from 0 to 1");
    refused(one_cycle(0.3, 0.0, Steps::ALL), &format!("`div_factor` is 0, {FACTOR}"));
    refused(one_cycle(0.3, 25.0, Steps::Count(0)), "`total_steps` is 0, expected at least one step");
    refused(
        one_cycle(0.3, 25.0, Steps::Share(2.0)),
        "`total_steps` is 2, expected a number of steps, or a share of them between 0 and 1",
    );
    let cosine = Schedule::CosineAnnealing { lr: 0.1, t_max: Steps::ALL, eta_min: 0.2 };
    refused(cosine, "`eta_min` is 0.2, expected at most the first rate `lr`");
    refused(Schedule::cosine_warm_restarts(0.1, 0, 2), "`t_0` is 0, expected at least one step");
    refused(Schedule::cosine_warm_restarts(0.1, 10, 0), "`t_mult` is 0, expected at least 1");
    refused(Schedule::step(0.1, 10, 0.0), &format!("`gamma` is 0, {FACTOR}"));
    refused(Schedule::step(0.1, 0, 0.1), "`step_size` is 0, expected at least one step");
    refused(Schedule::exponential(0.1, -0.5), &format!("`gamma` is -0.5, {FACTOR}"));
    refused(Schedule::multi_step(0.1, [30, 20], 0.1), "`milestones` has 30 before 20, expected steps in increasing order");
    refused(
        Schedule::multi_step(0.1, [Steps::Share(0.5), Steps::Count(20)], 0.1),
        "`milestones` has 50 % before 20, expected steps in increasing order",
    );
    refused(Schedule::multi_step(0.1, [0.5; 0], 0.1), "`milestones` is empty, expected at least one step");
    refused(Schedule::piecewise_linear([(0, 0.1), (0, 0.2)]), "`points` has 0 before 0, expected steps in increasing order");
    refused(Schedule::piecewise_linear([(0, -0.1)]), &format!("`points` is -0.1, {RATE}"));
    refused(Schedule::polynomial(0.1, f64::NAN), &format!("`power` is NaN, {FACTOR}"));
    refused(
        Schedule::constant(0.1).warmup(-0.1),
        "`warmup` is -0.1, expected a number of steps, or a share of them between 0 and 1",
    );
    refused(Schedule::constant(-0.1).warmup(10), &format!("`lr` is -0.1, {RATE}"));
    refused(
        Schedule::from_fn(|step, _| 2.0 - step as f64),
        "the function gives -1 at step 3, expected a finite rate that is not negative",
    );
}

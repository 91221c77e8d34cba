use super::Schedule;

/// The expected rates are what PyTorch 2.15 printed, its optimizer's rate before each update.
#[track_caller]
fn check(schedule: Schedule, expected: &[f64]) {
    for (step, expected) in expected.iter().enumerate() {
        let rate = schedule.rate(step);
        assert!((rate - expected).abs() <= 1e-12, "{schedule:?}: step {step} has rate {rate}, PyTorch has {expected}");
    }
}

#[test]
fn one_cycle_whose_top_is_a_step() {
    let schedule = Schedule::OneCycle { max_lr: 1.0, pct_start: 0.4, div_factor: 10.0, final_div_factor: 100.0, total_steps: 5 };
    check(schedule, &[0.1, 1.0, 0.75025, 0.25075, 0.001]);
}

#[test]
fn one_cycle_whose_top_is_between_steps() {
    let schedule = Schedule::OneCycle { max_lr: 0.4, pct_start: 0.25, div_factor: 25.0, final_div_factor: 1e4, total_steps: 10 };
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
    check(schedule, &expected);
}

#[test]
fn one_cycle_whose_top_is_before_the_first_step() {
    let schedule = Schedule::OneCycle { max_lr: 0.4, pct_start: 0.1, div_factor: 25.0, final_div_factor: 1e4, total_steps: 4 };
    check(schedule, &[0.37320518793656476, 0.23473029661484393, 0.07144379229277989, 1.6e-06]);
}

#[test]
fn one_cycle_that_only_goes_up() {
    let schedule = Schedule::OneCycle { max_lr: 1.0, pct_start: 1.0, div_factor: 25.0, final_div_factor: 1e4, total_steps: 3 };
    check(schedule, &[0.04, 0.52, 1.0]);
}

#[test]
fn one_cycle_keeps_its_last_rate() {
    let schedule = Schedule::one_cycle(0.4, 10);
    assert_eq!(schedule.rate(10), schedule.rate(9), "one step past the end");
    assert_eq!(schedule.rate(usize::MAX), schedule.rate(9), "far past the end");
}

#[test]
fn cosine_annealing_comes_back_up() {
    let expected = [0.1, 0.0855017856687341, 0.0505, 0.0154982143312659, 0.001, 0.0154982143312659, 0.0505];
    check(Schedule::CosineAnnealing { lr: 0.1, t_max: 4, eta_min: 1e-3 }, &expected);
}

#[test]
fn step_multiplies() {
    check(Schedule::Step { lr: 0.1, step_size: 3, gamma: 0.3 }, &[0.1, 0.1, 0.1, 0.03, 0.03, 0.03, 0.009, 0.009]);
}

#[test]
fn sizes_of_nothing_give_numbers() {
    for n_steps in [0, 1] {
        for schedule in [
            Schedule::one_cycle(0.4, n_steps),
            Schedule::CosineAnnealing { lr: 0.1, t_max: n_steps, eta_min: 0.0 },
            Schedule::Step { lr: 0.1, step_size: n_steps, gamma: 0.5 },
        ] {
            assert!(schedule.table(0..3).iter().all(|rate| rate.is_finite()), "{schedule:?}");
        }
    }
}

#[test]
fn a_table_has_the_rates_of_its_steps() {
    let schedule = Schedule::one_cycle(0.4, 10);
    let rates: Vec<f32> = (3..7).map(|step| schedule.rate(step) as f32).collect();
    assert_eq!(schedule.table(3..7), rates, "steps 3 to 6");
    assert_eq!(Schedule::Constant { lr: 0.25 }.table(5..8), [0.25; 3], "a constant");
}

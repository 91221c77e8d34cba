//! How the time of a fitting is planned for networks and for what follows them.

use std::time::{Duration, Instant};

use crate::recipe::Recipe;

/// What a fitting takes for each set of training and validation rows besides its networks, in passes of all of these over the
/// validation rows.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Passes {
    /// Of the fitting: to choose networks, to calibrate them, and to score folds.
    pub(super) own: f64,
    /// Of its caller, with the model.
    pub(super) after: f64,
    /// For the importance of columns, at least.
    pub(super) importance: f64,
}

/// The time of a fitting.
#[derive(Debug)]
pub(super) struct Budget<'a> {
    started: Instant,
    max_time: Option<Duration>,
    recipes: &'a [Recipe],
    n_sets: usize,
    passes: Passes,
    /// The set whose networks are trained, when that began, and the time for it.
    set: usize,
    set_started: Instant,
    set_time: Option<Duration>,
    /// How long a pass of the networks of this set takes that were measured, and their cost.
    pass: Duration,
    measured: f64,
    /// For what follows the networks of the sets before.
    set_aside: Duration,
}

impl<'a> Budget<'a> {
    pub(super) fn new(max_time: Option<Duration>, recipes: &'a [Recipe], n_sets: usize, passes: Passes) -> Self {
        let now = Instant::now();
        let set_time = max_time.map(|time| time / n_sets.max(1) as u32);
        let (pass, set_aside) = (Duration::ZERO, Duration::ZERO);
        Self {
            started: now,
            max_time,
            recipes,
            n_sets,
            passes,
            set: 0,
            set_started: now,
            set_time,
            pass,
            measured: 0.0,
            set_aside,
        }
    }

    /// The networks of the next set are trained from now on.
    pub(super) fn begin_set(&mut self, set: usize) {
        self.set_aside += if set > 0 { self.reserved() } else { Duration::ZERO };
        (self.set, self.set_started) = (set, Instant::now());
        (self.pass, self.measured) = (Duration::ZERO, 0.0);
        let left = self.max_time.map(|time| time.saturating_sub(self.started.elapsed()).saturating_sub(self.set_aside));
        self.set_time = left.map(|left| left / (self.n_sets - set).max(1) as u32);
    }

    /// One pass of a network over the validation rows takes this long.
    pub(super) fn add_pass(&mut self, recipe: &Recipe, pass: Duration) {
        self.pass += pass;
        self.measured += recipe.cost();
    }

    /// The time of a pass of all networks of the set that were measured.
    pub(super) fn pass(&self) -> Duration {
        self.pass
    }

    pub(super) fn max_time(&self) -> Option<Duration> {
        self.max_time
    }

    /// Whether there is time for half of a network like those of the set before it.
    pub(super) fn has_time_for(&self, network: usize) -> bool {
        let (own, before) = (self.recipes[network].cost(), cost(&self.recipes[..network]));
        let is_enough = |left: Duration| left >= self.set_started.elapsed().mul_f64(own / (2.0 * before));
        network == 0 || self.left_of_set().is_none_or(is_enough)
    }

    /// The time for a network of the set.
    pub(super) fn time_for(&self, network: usize) -> Option<Duration> {
        let share = share_of_time(&self.recipes[network], &self.recipes[network + 1..]);
        self.left_of_set().map(|left| left.mul_f64(share).max(LEAST_TIME))
    }

    /// About how long everything takes from a network of the set on. The first of all takes `training_s` seconds, the others are
    /// as fast as those before, in proportion to their costs.
    pub(super) fn to_go(&self, network: usize, training_s: f64) -> Duration {
        let (of_set, elapsed) = (cost(self.recipes), self.started.elapsed());
        let (all, trained) = (self.n_sets as f64 * of_set, self.set as f64 * of_set + cost(&self.recipes[..network]));
        let networks_s = if trained > 0.0 {
            elapsed.as_secs_f64() * (all - trained) / trained
        } else {
            training_s * all / self.recipes[network].cost()
        };
        let Passes { own, after, importance } = self.passes;
        let passes = if self.measured > 0.0 { (own + after + importance) * all / self.measured } else { 0.0 };
        let to_go = Duration::from_secs_f64((networks_s + passes * self.pass.as_secs_f64()).min(MOST_S));
        self.max_time.map_or(to_go, |time| to_go.min(time.saturating_sub(elapsed)))
    }

    /// The time for importance in the sets from `set` on, if what follows it is to end in time; `pass` is the time of a pass of
    /// the networks of all sets that are kept.
    pub(super) fn left_for_importance(&self, set: usize, pass: Duration) -> Option<Duration> {
        let after = pass.mul_f64(self.passes.after);
        let left = self.max_time.map(|time| time.saturating_sub(self.started.elapsed()).saturating_sub(after));
        left.map(|left| left / (self.n_sets - set).max(1) as u32)
    }

    fn left_of_set(&self) -> Option<Duration> {
        self.set_time.map(|time| time.saturating_sub(self.set_started.elapsed()).saturating_sub(self.reserved()))
    }

    /// For what follows the networks of the set.
    fn reserved(&self) -> Duration {
        let Passes { own, after, importance } = self.passes;
        let most = self.max_time.map_or(Duration::MAX, |time| time / (IMPORTANCE_SHARE * self.n_sets.max(1) as u32));
        self.pass.mul_f64(own + after) + self.pass.mul_f64(importance).min(most)
    }
}

/// About how long recipes take, in ensembles.
pub(super) fn cost(recipes: &[Recipe]) -> f64 {
    recipes.iter().map(Recipe::cost).sum()
}

/// The share of the time that is left that a network may take, if there are others `after` it.
fn share_of_time(recipe: &Recipe, after: &[Recipe]) -> f64 {
    if after.is_empty() {
        1.0
    } else if recipe.is_linear() {
        recipe.cost()
    } else if after.iter().all(Recipe::is_linear) {
        1.0 - cost(after)
    } else {
        0.5
    }
}

/// The longest estimate, in seconds.
const MOST_S: f64 = 1e12;

/// Importance takes at most the time divided by this.
const IMPORTANCE_SHARE: u32 = 20;

/// Given to a network although there is no time left, so that there is a model.
const LEAST_TIME: Duration = Duration::from_millis(100);

#[cfg(test)]
mod tests {
    use crate::network::Network;

    use super::*;

    fn recipes(hidden: &[&[usize]]) -> Vec<Recipe> {
        hidden.iter().map(|hidden| Recipe::of_one(Network::Mlp { hidden: hidden.to_vec() }, 100)).collect()
    }

    #[test]
    fn a_linear_model_takes_a_twentieth_of_the_time() {
        let share = |all: &[&[usize]]| share_of_time(&recipes(all)[0], &recipes(all)[1..]);
        let (network, linear): (&[usize], &[usize]) = (&[8], &[]);
        assert_eq!([share(&[network, linear, network]), share(&[linear, network]), share(&[network])], [0.5, 0.05, 1.0]);
        assert_eq!([share(&[network, linear]), share(&[linear])], [0.95, 1.0], "all others are linear, or none is left");
    }

    const PASSES: Passes = Passes { own: 2.0, after: 6.0, importance: 2.0 };
    const SECOND: Duration = Duration::from_secs(1);

    /// Whether it is this many seconds, but for those of the test.
    #[track_caller]
    fn check(found: Duration, expected: f64) {
        let found = found.as_secs_f64();
        assert!((found - expected).abs() < 0.1, "{found} s, expected {expected}");
    }

    #[test]
    fn time_is_set_aside_for_what_follows() {
        let recipes = recipes(&[&[8], &[8]]);
        let mut budget = Budget::new(Some(100 * SECOND), &recipes, 1, PASSES);
        budget.begin_set(0);
        check(budget.time_for(0).unwrap_or_default(), 50.0);
        budget.add_pass(&recipes[0], SECOND);
        check(budget.time_for(0).unwrap_or_default(), 45.0);
        budget.add_pass(&recipes[1], SECOND);
        check(budget.time_for(1).unwrap_or_default(), 80.0);
        check(budget.left_for_importance(0, 2 * SECOND).unwrap_or_default(), 88.0);
        budget.add_pass(&recipes[1], 100 * SECOND);
        assert_eq!(budget.time_for(1), Some(LEAST_TIME), "so that there is a model");
    }

    #[test]
    fn sets_of_rows_share_the_time() {
        let recipes = recipes(&[&[8]]);
        let mut budget = Budget::new(Some(100 * SECOND), &recipes, 2, PASSES);
        budget.begin_set(0);
        budget.add_pass(&recipes[0], SECOND);
        check(budget.time_for(0).unwrap_or_default(), 40.0);
        budget.begin_set(1);
        check(budget.time_for(0).unwrap_or_default(), 90.0);
        budget.add_pass(&recipes[0], SECOND);
        check(budget.time_for(0).unwrap_or_default(), 80.0);
        let mut unlimited = Budget::new(None, &recipes, 2, PASSES);
        unlimited.begin_set(0);
        assert_eq!((unlimited.time_for(0), unlimited.has_time_for(0)), (None, true));
    }

    #[test]
    fn the_end_is_estimated_from_the_first_network_on() {
        let recipes = recipes(&[&[8], &[8], &[]]);
        let mut budget = Budget::new(None, &recipes, 2, PASSES);
        budget.begin_set(0);
        check(budget.to_go(0, 10.0), 41.0);
        budget.add_pass(&recipes[0], SECOND);
        check(budget.to_go(0, 10.0), 41.0 + 41.0);
        budget.started = Instant::now() - 20 * SECOND;
        check(budget.to_go(1, 0.0), 20.0 * 3.1 + 41.0);
        budget.max_time = Some(50 * SECOND);
        check(budget.to_go(1, 0.0), 30.0);
    }
}

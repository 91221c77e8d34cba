use crate::float::{ln, one_minus_exp_neg};

/// A number of the step that a [`Rule`](crate::Rule) reads, the same for all elements, or for all elements of a
/// [group](crate::GROUP_LEN). It follows from the [state](crate::STATE_LEN) of the run and from a table.
///
/// Counts are compared as integers, so that this is exact in runs of any length.
#[derive(Debug, Clone, Copy, PartialEq)]
#[expect(missing_docs, reason = "a field is described with its variant, unless its name says what it is")]
pub enum StepValue {
    /// The learning rate, `table[min(state.batch, n - 1)]`, times the factor of the group.
    Rate,
    /// The weight decay: this number, or that of the group.
    Decay(f32),
    /// 1 in a step that must be skipped, `state.skip` is not 0, else 0.
    Skipped,
    /// The number in an argument of its own, such as a norm.
    Number,
    /// The entry of the table for this count: the first one for counts up to `every`, at least 1, the next one for the next
    /// `every`, and the last one for all further counts.
    Entry { of: StepCount, every: u32 },
    /// 1 if this count is `first`, or `first` plus a multiple of `every`, at least 1, or `u32::MAX` for none; else 0.
    Due { of: StepCount, first: u32, every: u32 },
    /// 1 if this count is at most `last`, else 0.
    UpTo { of: StepCount, last: u32 },
    /// `1 / (1 - decayᵗ)` for update number `t`, by which a running mean that starts at 0 is multiplied to correct its bias; the
    /// decay is from 0 to below 1.
    BiasCorrection(f32),
    /// The square root of the [`BiasCorrection`](Self::BiasCorrection).
    RootBiasCorrection(f32),
}

/// What a [`StepValue`] counts. All counts include the present one, so the first is 1.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum StepCount {
    /// Batches of the epoch: `state.batch + 1`.
    Batches,
    /// Steps of the run, including skipped ones: `state.step + 1`.
    Steps,
    /// Steps of the run without those skipped before: `state.step - state.n_skipped + 1`.
    Updates,
}

impl StepValue {
    /// Whether it is an entry of the table.
    pub(super) const fn reads_table(self) -> bool {
        matches!(self, Self::Rate | Self::Entry { .. })
    }

    /// The numbers that must be at least 1.
    pub(super) const fn every(self) -> u32 {
        match self {
            Self::Entry { every, .. } | Self::Due { every, .. } => every,
            Self::Rate
            | Self::Decay(_)
            | Self::Skipped
            | Self::Number
            | Self::UpTo { .. }
            | Self::BiasCorrection(_)
            | Self::RootBiasCorrection(_) => 1,
        }
    }

    pub(super) fn value(self, table: &[f32], state: &[u32]) -> f32 {
        let entry = |i: u32| table[(i as usize).min(table.len() - 1)];
        let number = |is: bool| if is { 1.0 } else { 0.0 };
        match self {
            Self::Rate => entry(state[0]),
            Self::Decay(decay) => decay,
            Self::Skipped => number(state[2] != 0),
            Self::Number => unreachable!("the caller reads the argument"),
            Self::Entry { of, every } => entry(of.before(state) / every),
            Self::Due { of, first, every } => {
                number(of.count(state).checked_sub(first).is_some_and(|further| further.is_multiple_of(every)))
            }
            Self::UpTo { of, last } => number(of.count(state) <= last),
            Self::BiasCorrection(decay) => 1.0 / bias(decay, state),
            Self::RootBiasCorrection(decay) => 1.0 / bias(decay, state).sqrt(),
        }
    }

    /// The same as an f32 expression of `table` and `state`.
    pub(super) fn wgsl(self) -> String {
        let entry = |i: String| format!("table[min({i}, arrayLength(&table) - 1u)]");
        match self {
            Self::Rate => entry("state[0]".to_owned()),
            Self::Decay(decay) => format!("f32({decay:?})"),
            Self::Skipped => "select(0.0, 1.0, state[2] != 0u)".to_owned(),
            Self::Number => unreachable!("the caller reads the argument"),
            Self::Entry { of, every } => entry(format!("{} / {every}u", of.before_wgsl())),
            Self::Due { of, first, every } => {
                let count = of.count_wgsl();
                format!("select(0.0, 1.0, {count} >= {first}u && ({count} - {first}u) % {every}u == 0u)")
            }
            Self::UpTo { of, last } => format!("select(0.0, 1.0, {} <= {last}u)", of.count_wgsl()),
            Self::BiasCorrection(decay) => format!("1.0 / {}", bias_wgsl(decay)),
            Self::RootBiasCorrection(decay) => format!("1.0 / sqrt({})", bias_wgsl(decay)),
        }
    }
}

/// `1 - decayᵗ`.
fn bias(decay: f32, state: &[u32]) -> f32 {
    one_minus_exp_neg(-(StepCount::Updates.count(state) as f32) * ln(decay))
}

fn bias_wgsl(decay: f32) -> String {
    // The logarithm of 0 is not a number in WGSL.
    if decay == 0.0 {
        "1.0".to_owned()
    } else {
        format!("one_minus_exp_neg(f32({}) * {:?})", StepCount::Updates.count_wgsl(), -ln(decay))
    }
}

impl StepCount {
    /// The number before the present one.
    fn before(self, state: &[u32]) -> u32 {
        match self {
            Self::Batches => state[0],
            Self::Steps => state[1],
            Self::Updates => state[1].wrapping_sub(state[3]),
        }
    }

    fn count(self, state: &[u32]) -> u32 {
        self.before(state).wrapping_add(1)
    }

    const fn before_wgsl(self) -> &'static str {
        match self {
            Self::Batches => "state[0]",
            Self::Steps => "state[1]",
            Self::Updates => "(state[1] - state[3])",
        }
    }

    fn count_wgsl(self) -> String {
        format!("({} + 1u)", self.before_wgsl())
    }
}

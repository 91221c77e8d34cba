//! `model.json`: everything of a model but its parameters.

use std::collections::{HashMap, HashSet};

use brisk_nn::{NumberEmbedding, SmoothClip};
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::calibration::{Calibration, ClassCalibration};
use crate::importance::Importance;
use crate::intervals::Intervals;
use crate::network::{Member, Network};
use crate::preprocessing::Preprocessing;
use crate::reading::Reading;
use crate::scale::ColumnScale;
use crate::target::Target;
use crate::text_options::TextOptions;
use crate::threshold::Threshold;

/// The version of the format.
pub(super) const FORMAT: u64 = 8;

/// The largest size of a layer.
const MAX_SIZE: usize = 1 << 20;

/// The most networks of an ensemble.
const MAX_MEMBERS: usize = 1024;

#[derive(Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Description {
    pub(super) format: u64,
    pub(super) brisk_version: String,
    /// That of the text, in which it is [`UNSEALED`].
    pub(super) checksum: String,
    pub(super) parameters_crc32: u32,
    pub(super) text: TextOptions,
    pub(super) network: Network,
    pub(super) target: Target,
    pub(super) calibration: Option<Calibration>,
    pub(super) threshold: Option<Threshold>,
    pub(super) intervals: Option<Intervals>,
    pub(super) preprocessing: Preprocessing,
    pub(super) scores: Vec<Score>,
    pub(super) importance: Option<Importance>,
}

#[derive(Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Score {
    name: String,
    /// `None` for a number that is not finite, which JSON has not.
    value: Option<f64>,
}

impl Score {
    pub(super) fn of((name, value): &(String, f64)) -> Self {
        Self { name: name.clone(), value: Some(*value) }
    }
}

impl Description {
    /// The text of the file, with its checksum.
    pub(super) fn to_text(&self) -> Result<String, serde_json::Error> {
        // By way of a value, in which an f32 has all its digits.
        let text = format!("{:#}\n", serde_json::to_value(self)?);
        let checksum = checksum_of(text.as_bytes());
        Ok(text.replacen(&sealed(UNSEALED), &sealed(&checksum), 1))
    }

    /// The description in a file, whose format is the one above; or what is wrong with it, by the place within the file.
    pub(super) fn of(value: &Value) -> Result<Self, String> {
        let description: Self = serde_path_to_error::deserialize(value).map_err(|error| {
            let (place, cause) = (error.path().to_string(), error.inner());
            if place == "." { cause.to_string() } else { format!("`{place}`: {cause}") }
        })?;
        description.check_network(&description.network)?;
        description.check_target()?;
        description.check_calibration()?;
        let is_right = |threshold: &Threshold| description.target.classes().len() == 2 && (0.0..=1.0).contains(&threshold.value);
        require(description.threshold.as_ref().is_none_or(is_right), "threshold", "a probability of one of two classes")?;
        let is_right = |intervals: &Intervals| description.target.classes().is_empty() && intervals.is_right();
        require(description.intervals.as_ref().is_none_or(is_right), "intervals", "a lower and an upper bound of a number")?;
        description.check_numbers()?;
        description.check_columns()?;
        Ok(description)
    }

    /// Compares the checksum with that of the text that the description was read from.
    pub(super) fn check_sum(&self, text: &[u8]) -> Result<(), String> {
        // Without the very bytes of `sealed` the text differs from what was written, and so does its checksum.
        let unsealed = String::from_utf8_lossy(text).replacen(&sealed(&self.checksum), &sealed(UNSEALED), 1);
        let found = checksum_of(unsealed.as_bytes());
        let expected = &self.checksum;
        if found == *expected { Ok(()) } else { Err(format!("has checksum {found}, expected {expected}")) }
    }

    /// The scores by name; those that were not finite are NaN.
    pub(super) fn scores(&self) -> Vec<(String, f64)> {
        self.scores.iter().map(|Score { name, value }| (name.clone(), value.unwrap_or(f64::NAN))).collect()
    }

    fn check_network(&self, network: &Network) -> Result<(), String> {
        let sizes = match network {
            Network::Ensemble { members } => {
                let place = "network.members";
                require((1..=MAX_MEMBERS).contains(&members.len()), place, "a list of 1 to 1024 networks")?;
                let is_share = |member: &Member| member.weight > 0.0 && member.weight <= 1.0;
                require(members.iter().all(is_share), place, "networks with weights up to 1")?;
                let is_one = |member: &Member| !matches!(member.network, Network::Ensemble { .. });
                require(members.iter().all(is_one), place, "networks that are no ensembles")?;
                return members.iter().try_for_each(|member| self.check_network(&member.network));
            }
            Network::Mlp { hidden } => hidden.clone(),
            Network::ResidualMlp { width, hidden, .. } => vec![*width, *hidden],
            Network::TabM { n_members, hidden, dropout, numbers, category_dim, .. }
            | Network::RealMlp { n_members, hidden, dropout, numbers, category_dim, .. } => {
                require((0.0..1.0).contains(dropout), "network.dropout", "a probability below 1")?;
                let n_features = self.preprocessing.feature_names().len();
                if let Network::RealMlp { scaling: SmoothClip { centers, factors }, .. } = network {
                    let is_right = |values: &[f32]| values.len() == n_features && values.iter().all(|value| value.is_finite());
                    let expected = "a finite center and factor of each feature";
                    require(is_right(centers) && is_right(factors), "network.scaling", expected)?;
                }
                let of_numbers = match numbers {
                    NumberEmbedding::Plain => 1,
                    NumberEmbedding::PiecewiseLinear { edges, .. } => {
                        require(edges.len() == n_features, "network.numbers.edges", "a list of edges for each feature")?;
                        let is_right = |edges: &Vec<f32>| edges.len() >= 2 && is_ascending(edges);
                        let expected = "two or more different numbers in ascending order each";
                        require(edges.iter().all(is_right), "network.numbers.edges", expected)?;
                        edges.iter().map(Vec::len).max().unwrap_or(1)
                    }
                    NumberEmbedding::Periodic { n_frequencies, std, .. } | NumberEmbedding::Pbld { n_frequencies, std, .. } => {
                        require(*std > 0.0 && std.is_finite(), "network.numbers.std", "a number above 0")?;
                        let is_pbld = matches!(numbers, NumberEmbedding::Pbld { .. });
                        require(!is_pbld || numbers.dim() > 1, "network.numbers.dim", "at least 2: a wave, and the number")?;
                        *n_frequencies
                    }
                };
                [&[*n_members, numbers.dim(), of_numbers, *category_dim], &hidden[..]].concat()
            }
        };
        require(sizes.iter().all(|size| (1..=MAX_SIZE).contains(size)), "network", "a network with sizes from 1 to 2^20")
    }

    fn check_target(&self) -> Result<(), String> {
        match &self.target {
            Target::Classes { classes, labels, .. } => {
                if let Some(twice) = twice(classes) {
                    return Err(format!("`target.classes` has {twice:?} twice"));
                }
                require(is_ascending(labels), "target.labels", "different numbers in ascending order")?;
                let is_one_each = classes.len() == labels.len() && classes.len() >= 2;
                require(is_one_each, "target.classes", "two or more classes, and a label for each")
            }
            Target::Number { std, .. } => require(is_deviation(*std), "target.std", DEVIATION),
        }
    }

    fn check_calibration(&self) -> Result<(), String> {
        let is_number = self.target.classes().is_empty();
        let ClassCalibration { temperature, constant_share, frequencies, shifts } = match &self.calibration {
            None => return Ok(()),
            Some(Calibration::Number(calibration)) => {
                require(is_number, "calibration.kind", "`classes`, as the target is")?;
                let is_right = calibration.slope >= 0.0 && calibration.slope.is_finite();
                require(is_right, "calibration.slope", "a number of at least 0")?;
                let are_finite = [calibration.intercept, calibration.gain, calibration.gain_error].iter().all(|x| x.is_finite());
                return require(are_finite, "calibration", "a line of finite numbers");
            }
            Some(Calibration::Classes(calibration)) => calibration,
        };
        require(!is_number, "calibration.kind", "`number`, as the target is")?;
        let is_one_each = frequencies.len() == self.target.classes().len() && !frequencies.is_empty();
        require(is_one_each, "calibration.frequencies", "a number for each class")?;
        let are_shares = frequencies.iter().all(|frequency| (0.0..=1.0).contains(frequency));
        require(are_shares, "calibration.frequencies", "numbers from 0 to 1")?;
        let are_shifts = shifts.len() == frequencies.len() && are_finite(shifts);
        require(are_shifts, "calibration.shifts", "a number for each class")?;
        require((1e-3..=1e3).contains(temperature), "calibration.temperature", "a number from 0.001 to 1000")?;
        require((0.0..=1.0).contains(constant_share), "calibration.constant_share", "a number from 0 to 1")
    }

    fn check_numbers(&self) -> Result<(), String> {
        for (i, column) in self.preprocessing.numbers.iter().enumerate() {
            let place = |part: &str| format!("preprocessing.numbers[{i}].{part}");
            match &column.scale {
                ColumnScale::Standard { std, .. } => require(is_deviation(*std), &place("scale.std"), DEVIATION)?,
                ColumnScale::Quantile { quantiles } => {
                    let is_in_order = quantiles.len() >= 2 && quantiles.is_sorted() && are_finite(quantiles);
                    require(is_in_order, &place("scale.quantiles"), "two or more numbers in ascending order")?;
                }
            }
            let [min, max] = column.range;
            require(min <= max && are_finite(&column.range), &place("range"), "two numbers in ascending order")?;
        }
        Ok(())
    }

    /// A column has one use; only the parts of a date are several.
    fn check_columns(&self) -> Result<(), String> {
        let Preprocessing { numbers, categories, n_rare, .. } = &self.preprocessing;
        require(n_rare.len() == categories.len(), "preprocessing.n_rare", "a number for each of the categories")?;
        let mut columns: HashMap<&str, Vec<Option<Reading>>> = HashMap::new();
        let uses = numbers.iter().map(|column| (column.column.as_str(), Some(column.reading)));
        for (name, reading) in uses.chain(categories.iter().map(|column| (column.name(), None))) {
            let earlier = columns.entry(name).or_default();
            let is_part = |reading: Option<Reading>| reading.is_some_and(Reading::is_part_of_date);
            let is_same = |other: Option<Reading>| other.map(Reading::name) == reading.map(Reading::name);
            if earlier.iter().any(|&other| is_same(other) || !is_part(other) || !is_part(reading)) {
                return Err(format!("`preprocessing` has column `{name}` twice"));
            }
            earlier.push(reading);
        }
        Ok(())
    }
}

fn require(holds: bool, place: &str, expected: &str) -> Result<(), String> {
    if holds { Ok(()) } else { Err(format!("`{place}` is not {expected}")) }
}

const DEVIATION: &str = "a positive number, as deviations are";

/// Numbers are divided by it.
fn is_deviation(std: f64) -> bool {
    std > 0.0 && (1.0 / std).is_finite() && std <= f64::from(f32::MAX)
}

fn is_ascending(numbers: &[f32]) -> bool {
    numbers.is_sorted_by(|a, b| a < b) && are_finite(numbers)
}

fn are_finite(numbers: &[f32]) -> bool {
    numbers.iter().all(|number| number.is_finite())
}

fn twice(names: &[String]) -> Option<&String> {
    let mut seen = HashSet::new();
    names.iter().find(|&name| !seen.insert(name))
}

/// In place of the checksum in the text of which it is the checksum.
pub(super) const UNSEALED: &str = "00000000";

/// How the checksum is written.
fn sealed(checksum: &str) -> String {
    format!("\"checksum\": \"{checksum}\"")
}

fn checksum_of(text: &[u8]) -> String {
    format!("{:08x}", crc32fast::hash(text))
}

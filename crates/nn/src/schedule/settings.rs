//! Schedules as values of files: what may be left out, and warm-ups beside the schedule that they precede.

use std::fmt;

use serde::de::value::MapAccessDeserializer;
use serde::de::{MapAccess, Visitor};
use serde::ser::Error as _;
use serde::{Deserialize, Deserializer, Serialize, Serializer};

use super::{Schedule, Steps};

/// A schedule, and the warm-up before it.
#[derive(Serialize)]
struct WithWarmup<'a> {
    #[serde(flatten, serialize_with = "without_warmup")]
    then: &'a Schedule,
    #[serde(skip_serializing_if = "Option::is_none")]
    warmup: Option<Steps>,
}

fn without_warmup<S: Serializer>(schedule: &Schedule, serializer: S) -> Result<S::Ok, S::Error> {
    match schedule {
        Schedule::Warmup { .. } => Err(S::Error::custom("a warm-up of a warm-up; give one of them")),
        Schedule::Function(_) => Named { name: "function" }.serialize(serializer),
        schedule => Schedule::serialize(schedule, serializer),
    }
}

#[derive(Serialize)]
struct Named {
    name: &'static str,
}

impl Serialize for Schedule {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let (then, warmup) = match self {
            Self::Warmup { steps, then } => (&**then, Some(*steps)),
            schedule => (schedule, None),
        };
        WithWarmup { then, warmup }.serialize(serializer)
    }
}

/// The same as [`WithWarmup`].
#[derive(Deserialize)]
struct OwnedWithWarmup {
    #[serde(flatten, deserialize_with = "Schedule::deserialize")]
    then: Schedule,
    warmup: Option<Steps>,
}

impl<'de> Deserialize<'de> for Schedule {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(RateOrTable)
    }
}

struct RateOrTable;

impl<'de> Visitor<'de> for RateOrTable {
    type Value = Schedule;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a learning rate, or a table with the name of a schedule and its values")
    }

    fn visit_f64<E>(self, lr: f64) -> Result<Schedule, E> {
        Ok(Schedule::constant(lr))
    }

    fn visit_i64<E>(self, lr: i64) -> Result<Schedule, E> {
        Ok(Schedule::constant(lr as f64))
    }

    fn visit_u64<E>(self, lr: u64) -> Result<Schedule, E> {
        Ok(Schedule::constant(lr as f64))
    }

    fn visit_map<A: MapAccess<'de>>(self, table: A) -> Result<Schedule, A::Error> {
        let OwnedWithWarmup { then, warmup } = OwnedWithWarmup::deserialize(MapAccessDeserializer::new(table))?;
        Ok(match warmup {
            None => then,
            Some(steps) => then.warmup(steps),
        })
    }
}

/// Points, of which a step 1 is the end of the run, the fraction 1: a point at the second step is hardly ever intended.
pub(super) fn points<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Vec<(Steps, f64)>, D::Error> {
    let points = Vec::<(Steps, f64)>::deserialize(deserializer)?;
    let is_end = |steps: &Steps| *steps == Steps::Count(1);
    Ok(points.into_iter().map(|(steps, lr)| (if is_end(&steps) { Steps::ALL } else { steps }, lr)).collect())
}

pub(super) fn all_steps() -> Steps {
    Steps::ALL
}

pub(super) fn one() -> usize {
    1
}

pub(super) fn pct_start() -> f64 {
    0.3
}

pub(super) fn div_factor() -> f64 {
    25.0
}

pub(super) fn final_div_factor() -> f64 {
    1e4
}

pub(super) fn gamma() -> f64 {
    0.1
}

pub(super) fn power() -> f64 {
    1.0
}

//! Schedules as values of files, with warm-ups beside the schedule that they precede.

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

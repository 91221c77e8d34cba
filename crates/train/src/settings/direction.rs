//! Whether less or more is better, as a setting: `min` or `max`.

use brisk_metrics::Direction;
use serde::{Deserialize, Deserializer, Serialize, Serializer};

#[derive(Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
enum Goal {
    Min,
    Max,
}

pub(crate) fn serialize<S: Serializer>(direction: &Option<Direction>, serializer: S) -> Result<S::Ok, S::Error> {
    let mode = direction.map(|direction| if direction == Direction::Minimize { Goal::Min } else { Goal::Max });
    mode.serialize(serializer)
}

pub(crate) fn deserialize<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<Direction>, D::Error> {
    let mode = Option::<Goal>::deserialize(deserializer)?;
    Ok(mode.map(|mode| if matches!(mode, Goal::Min) { Direction::Minimize } else { Direction::Maximize }))
}

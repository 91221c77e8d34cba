//! The JSON of a safetensors header. A duplicate name is an error, whereas derived code and `serde_json::Value` keep the last
//! one.

use std::collections::HashSet;
use std::fmt;
use std::marker::PhantomData;

use serde_core::de::{DeserializeSeed, Deserializer, Error as _, IgnoredAny, MapAccess, Visitor};
use serde_core::{Deserialize, de};

/// The content of a header, before it is checked.
#[derive(Debug, Default)]
pub(super) struct Claims {
    pub(super) tensors: Vec<(String, TensorClaim)>,
    pub(super) metadata: Vec<(String, String)>,
}

#[derive(Debug)]
pub(super) struct TensorClaim {
    pub(super) dtype: String,
    pub(super) shape: Vec<u64>,
    pub(super) offsets: [u64; 2],
}

impl<'de> Deserialize<'de> for Claims {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct ClaimsVisitor;
        impl<'de> Visitor<'de> for ClaimsVisitor {
            type Value = Claims;
            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("an object of tensors by name")
            }
            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Claims, A::Error> {
                let mut claims = Claims::default();
                let mut seen = HashSet::new();
                while let Some(name) = map.next_key::<String>()? {
                    if !seen.insert(name.clone()) {
                        return Err(given_twice("tensor", &name));
                    }
                    if name == "__metadata__" {
                        claims.metadata = map.next_value_seed(Pairs(PhantomData))?;
                    } else {
                        claims.tensors.push((name, map.next_value()?));
                    }
                }
                Ok(claims)
            }
        }
        deserializer.deserialize_map(ClaimsVisitor)
    }
}

impl<'de> Deserialize<'de> for TensorClaim {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct TensorVisitor;
        impl<'de> Visitor<'de> for TensorVisitor {
            type Value = TensorClaim;
            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a tensor's dtype, shape and data_offsets")
            }
            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<TensorClaim, A::Error> {
                let (mut dtype, mut shape, mut offsets) = (None, None, None);
                while let Some(key) = map.next_key::<String>()? {
                    match key.as_str() {
                        "dtype" => once(&mut dtype, "dtype", map.next_value()?)?,
                        "shape" => once(&mut shape, "shape", map.next_value()?)?,
                        "data_offsets" => once(&mut offsets, "data_offsets", map.next_value()?)?,
                        _ => {
                            map.next_value::<IgnoredAny>()?;
                            return Err(A::Error::unknown_field(&key, &["dtype", "shape", "data_offsets"]));
                        }
                    }
                }
                Ok(TensorClaim {
                    dtype: dtype.ok_or_else(|| A::Error::missing_field("dtype"))?,
                    shape: shape.ok_or_else(|| A::Error::missing_field("shape"))?,
                    offsets: offsets.ok_or_else(|| A::Error::missing_field("data_offsets"))?,
                })
            }
        }
        deserializer.deserialize_map(TensorVisitor)
    }
}

/// An object as pairs, in the order of the file.
struct Pairs<V>(PhantomData<V>);

impl<'de, V: Deserialize<'de>> DeserializeSeed<'de> for Pairs<V> {
    type Value = Vec<(String, V)>;
    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<Self::Value, D::Error> {
        deserializer.deserialize_map(self)
    }
}

impl<'de, V: Deserialize<'de>> Visitor<'de> for Pairs<V> {
    type Value = Vec<(String, V)>;
    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an object of strings")
    }
    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Self::Value, A::Error> {
        let mut pairs = Vec::new();
        let mut seen = HashSet::new();
        while let Some((key, value)) = map.next_entry::<String, V>()? {
            if !seen.insert(key.clone()) {
                return Err(given_twice("metadata", &key));
            }
            pairs.push((key, value));
        }
        Ok(pairs)
    }
}

fn once<T, E: de::Error>(slot: &mut Option<T>, field: &'static str, value: T) -> Result<(), E> {
    if slot.replace(value).is_some() {
        return Err(E::duplicate_field(field));
    }
    Ok(())
}

fn given_twice<E: de::Error>(what: &str, name: &str) -> E {
    E::custom(format_args!("{what} `{name}` is given twice"))
}

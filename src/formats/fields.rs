//! Objects with named fields, read strictly: what serde derives would also take a list of values, in the order of the fields.
//! Documents of ours come without that.

use std::fmt;
use std::marker::PhantomData;

use serde::de::value::MapAccessDeserializer;
use serde::de::{MapAccess, Visitor};
use serde::{Deserialize, Deserializer};

/// An object with named fields.
pub(crate) struct Fields<T>(pub(crate) T);

impl<'de, T: Deserialize<'de>> Deserialize<'de> for Fields<T> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_map(FieldsVisitor(PhantomData))
    }
}

struct FieldsVisitor<T>(PhantomData<T>);

impl<'de, T: Deserialize<'de>> Visitor<'de> for FieldsVisitor<T> {
    type Value = Fields<T>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an object")
    }

    fn visit_map<A: MapAccess<'de>>(self, map: A) -> Result<Fields<T>, A::Error> {
        T::deserialize(MapAccessDeserializer::new(map)).map(Fields)
    }
}

/// For `deserialize_with`: an object.
pub(crate) fn object<'de, D: Deserializer<'de>, T: Deserialize<'de>>(deserializer: D) -> Result<T, D::Error> {
    Fields::deserialize(deserializer).map(|Fields(value)| value)
}

/// For `deserialize_with`: a list of objects.
pub(crate) fn objects<'de, D: Deserializer<'de>, T: Deserialize<'de>>(deserializer: D) -> Result<Vec<T>, D::Error> {
    let list: Vec<Fields<T>> = Vec::deserialize(deserializer)?;
    Ok(list.into_iter().map(|Fields(value)| value).collect())
}

/// For `deserialize_with`: a list of objects, or null; such a field needs a default too.
pub(crate) fn maybe_objects<'de, D: Deserializer<'de>, T: Deserialize<'de>>(
    deserializer: D,
) -> Result<Option<Vec<T>>, D::Error> {
    let list: Option<Vec<Fields<T>>> = Option::deserialize(deserializer)?;
    Ok(list.map(|list| list.into_iter().map(|Fields(value)| value).collect()))
}

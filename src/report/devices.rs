//! What can evaluate here.

use serde::Serialize;

use super::json::append_line;
use super::table::{Align, Rows};
use crate::evaluate::DeviceInfo;

/// The list as one document.
///
/// # Errors
/// As [`append_line`].
pub fn devices_json(out: &mut Vec<u8>, devices: &[DeviceInfo]) -> Result<(), serde_json::Error> {
    #[derive(Serialize)]
    struct Device<'a> {
        backend: &'a str,
        name: &'a str,
        usable: bool,
        why: Option<&'a str>,
    }
    #[derive(Serialize)]
    struct Document<'a> {
        devices: Vec<Device<'a>>,
    }
    let list = devices.iter().map(|device| Device {
        backend: device.backend,
        name: &device.name,
        usable: device.usable,
        why: device.why.as_deref(),
    });
    append_line(out, &Document { devices: list.collect() })
}

/// The list as a table.
pub fn devices_table(devices: &[DeviceInfo]) -> String {
    let mut rows = Rows::new(&[("BACKEND", Align::Left), ("USABLE", Align::Left), ("DEVICE OR REASON", Align::Left)]);
    for device in devices {
        let text = device.why.as_deref().unwrap_or(&device.name);
        rows.push([device.backend, if device.usable { "yes" } else { "no" }, text]);
    }
    rows.text()
}

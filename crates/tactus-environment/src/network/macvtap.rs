//! How QEMU is given a macvtap: that is no name to be opened but a device file. The kernel names the file by the
//! interface's number, which is one of its namespace alone; so it is made anew, by what sysfs of that namespace says.

use super::namespace::enter;
use crate::attachment::{Attachment, GuestNic, Tap};

/// Opens the file as descriptor 3 and then becomes the command behind it. The mounts are in a separate namespace, and
/// are gone before the command begins. A step that fails prints its own error.
const OPEN: &str = "set -e
mount -t sysfs sysfs /sys
device=$(cat /sys/class/net/tap0/macvtap/tap*/dev)
mount -t tmpfs tmpfs /sys
mknod /sys/tap c ${device%:*} ${device#*:}
exec 3<>/sys/tap
umount -l /sys
umount -l /sys
exec \"$@\"";

/// The words before those of a guest's QEMU: where it runs, and what it is given.
#[must_use]
pub fn launch(place: &Attachment) -> Vec<String> {
    let mut words = enter(place.holder);
    if let Some(GuestNic { tap: Tap::File, .. }) = place.nic {
        words.extend(["unshare", "--mount", "--", "sh", "-c", OPEN, "sh"].map(str::to_owned));
    }
    words
}

#[cfg(test)]
mod tests {
    use tactus_model::plan::GuestDevice;

    use super::super::steps::{FAR, NEAR, TAP};
    use super::*;

    #[test]
    fn a_guest_on_a_macvtap_is_given_its_file_and_every_other_one_runs_in_the_namespace_alone() {
        let place = |nic| Attachment { holder: 11, address: NEAR, other: FAR, nic };
        let words = |tap| launch(&place(Some(GuestNic { device: GuestDevice::Virtio, tap })));
        let alone = ["nsenter", "--net=/proc/11/ns/net", "--"];
        assert_eq!(words(Tap::Named), alone);
        assert_eq!(launch(&place(None)), alone);
        let file = words(Tap::File);
        assert_eq!(file[..3], alone);
        assert!(OPEN.contains(&format!("/net/{TAP}/")) && file.last().unwrap() == "sh", "{file:?}");
    }
}

//! VFIO: a PCI device whose memory and interrupts a program has (linux/vfio.h, Documentation/driver-api/vfio.rst).
#![expect(unsafe_code, reason = "system calls that no safe crate offers")]

use std::ffi::CString;
use std::fs::File;
use std::io;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};

use tactus_model::device_card::Raises;

use super::raw::{Request, descriptor};
use super::registers::Registers;

/// Requests: type `;`, counted from 100.
const SET_IOMMU: Request = 0x3b66;
const GROUP_SET_CONTAINER: Request = 0x3b68;
const GROUP_GET_DEVICE: Request = 0x3b6a;
const GET_REGION: Request = 0x3b6c;
const SET_IRQS: Request = 0x3b6e;

/// VFIO_TYPE1v2_IOMMU: behind an IOMMU.
const TYPE1: libc::c_ulong = 3;
/// VFIO_NOIOMMU_IOMMU: behind none.
const NONE: libc::c_ulong = 8;
/// VFIO_PCI_CONFIG_REGION_INDEX.
const CONFIGURATION: u32 = 7;
/// VFIO_PCI_MSI_IRQ_INDEX and VFIO_PCI_MSIX_IRQ_INDEX.
const MSI: u32 = 1;
const MSI_X: u32 = 2;
/// VFIO_REGION_INFO_FLAG_READ, _WRITE and _MMAP.
const READ_AND_WRITE: u32 = 0b11;
const MAPPABLE: u32 = 0b100;
/// VFIO_IRQ_SET_DATA_EVENTFD and VFIO_IRQ_SET_ACTION_TRIGGER.
const BY_EVENTFD: u32 = (1 << 2) | (1 << 5);

/// The command register of a device, and its bits: it answers in memory, it may write there.
const COMMAND: u64 = 4;
const MEMORY_AND_MASTER: u16 = 0b110;

/// `struct vfio_region_info`.
#[repr(C)]
#[derive(Default)]
struct Region {
    length: u32,
    flags: u32,
    number: u32,
    capabilities: u32,
    size: u64,
    offset: u64,
}

/// The words of `struct vfio_irq_set` before its descriptors.
const HEAD: usize = 5;

/// A device that is bound to vfio-pci. It is given back where this is dropped.
#[derive(Debug)]
pub struct Device {
    device: OwnedFd,
    _group: File,
    _container: File,
}

impl Device {
    /// The device at a PCI address, in the group whose file this is.
    ///
    /// # Errors
    /// Those of open(2) and ioctl(2): EPERM and EBUSY when it is in use.
    pub fn open(group: &str, address: &str, iommu: bool) -> io::Result<Self> {
        let open = |path: &str| File::options().read(true).write(true).open(path);
        let (container, group) = (open("/dev/vfio/vfio")?, open(group)?);
        let name = CString::new(address)?;
        let mut number = container.as_raw_fd();
        // SAFETY: it reads one number, which is live.
        checked(unsafe { libc::ioctl(group.as_raw_fd(), GROUP_SET_CONTAINER, &raw mut number) })?;
        // SAFETY: it takes a number and no address.
        checked(unsafe { libc::ioctl(container.as_raw_fd(), SET_IOMMU, if iommu { TYPE1 } else { NONE }) })?;
        // SAFETY: it reads the name to its end, and that lives on.
        let made = unsafe { libc::ioctl(group.as_raw_fd(), GROUP_GET_DEVICE, name.as_ptr()) };
        Ok(Self { device: descriptor(made.into())?, _group: group, _container: container })
    }

    /// The offset of one of its regions in its file.
    ///
    /// # Errors
    /// Those of ioctl(2); `NotFound` when it is shorter than a page.
    pub fn memory(&self, number: u32) -> io::Result<u64> {
        let region = self.region(number)?;
        if region.size < 4096 {
            return Err(io::Error::new(
                io::ErrorKind::NotFound,
                format!("its region {number} is not memory"),
            ));
        }
        Ok(region.offset)
    }

    fn region(&self, number: u32) -> io::Result<Region> {
        let length = u32::try_from(size_of::<Region>()).unwrap_or_default();
        let mut region = Region { length, number, ..Region::default() };
        // SAFETY: it is live and this thread's own, and says how long it is: the call writes no more.
        checked(unsafe { libc::ioctl(self.device.as_raw_fd(), GET_REGION, &raw mut region) })?;
        Ok(region)
    }

    /// Lets it answer in memory and raise interrupts.
    ///
    /// # Errors
    /// Those of reading and writing its configuration.
    pub fn switch_on(&self) -> io::Result<()> {
        let at = self.region(CONFIGURATION)?.offset + COMMAND;
        let mut command = [0; 2];
        rustix::io::pread(&self.device, &mut command, at)?;
        let on = u16::from_le_bytes(command) | MEMORY_AND_MASTER;
        rustix::io::pwrite(&self.device, &on.to_le_bytes(), at)?;
        Ok(())
    }

    /// Makes its first `count` vectors count in one eventfd.
    ///
    /// # Errors
    /// Those of ioctl(2): EINVAL when it has fewer.
    pub fn raise(&self, how: Raises, count: u32, eventfd: BorrowedFd) -> io::Result<()> {
        let wide = usize::try_from(count).map_err(io::Error::other)?;
        let length = u32::try_from((HEAD + wide) * size_of::<u32>()).map_err(io::Error::other)?;
        let kind = if how == Raises::Msi { MSI } else { MSI_X };
        let mut words = vec![length, BY_EVENTFD, kind, 0, count];
        words.resize(HEAD + wide, eventfd.as_raw_fd().cast_unsigned());
        // SAFETY: they are live and this thread's own, and say how long they are: the call reads no more.
        checked(unsafe { libc::ioctl(self.device.as_raw_fd(), SET_IRQS, words.as_mut_ptr()) })
    }

    /// The registers behind one of its base address registers, those at `places` and between. If they cannot be mapped,
    /// each access is a system call.
    ///
    /// # Errors
    /// `NotFound` when the BAR does not exist, `InvalidInput` with the key of a register that lies beyond its end.
    pub fn registers(
        &self,
        bar: u32,
        places: impl Iterator<Item = (&'static str, u32)>,
    ) -> io::Result<Registers> {
        let region = self.region(bar)?;
        if region.size == 0 || region.flags & READ_AND_WRITE != READ_AND_WRITE {
            let what = format!("it has no readable and writable BAR {bar}");
            return Err(io::Error::new(io::ErrorKind::NotFound, what));
        }
        let (mut least, mut most) = (u32::MAX, 0);
        for (key, at) in places {
            if u64::from(at) + 4 > region.size {
                let what = format!("`{key}` is {at:#x}, and BAR {bar} has {:#x} bytes", region.size);
                return Err(io::Error::new(io::ErrorKind::InvalidInput, what));
            }
            (least, most) = (least.min(at), most.max(at));
        }
        if region.flags & MAPPABLE != 0
            && let Ok(mapped) = Registers::map(self.as_fd(), region.offset, least, most)
        {
            return Ok(mapped);
        }
        Ok(Registers::by_calls(self.device.try_clone()?, region.offset))
    }
}

impl AsFd for Device {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.device.as_fd()
    }
}

fn checked(result: libc::c_int) -> io::Result<()> {
    if result < 0 { Err(io::Error::last_os_error()) } else { Ok(()) }
}

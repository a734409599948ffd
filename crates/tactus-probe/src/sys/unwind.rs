//! No unwinder. The probe aborts when it panics and has no unwind tables (`small.ld`), so a stack walk is impossible.
//! The standard library would still link an unwinder (libunwind) and readers of debug information (gimli, addr2line,
//! miniz): a fifth of the program. This module defines the functions of the unwinder that the standard library uses
//! (Itanium C++ ABI: Exception Handling, level I), so that no others are linked. The walk never calls its callback, so
//! link-time optimization removes the code for backtraces. The message of a panic and its place in the source stay.
//!
//! If a standard library uses more of them, the linker says `duplicate symbol`: add that name to the list.
#![expect(unsafe_code, reason = "these names are the unwinder's")]

/// Walks the stack: its end is reached at once.
// SAFETY: no other definition of the name is linked, and this one does what the ABI says of a stack without frames.
#[unsafe(no_mangle)]
extern "C" fn _Unwind_Backtrace() -> core::ffi::c_int {
    /// `_URC_END_OF_STACK`.
    const END_OF_STACK: core::ffi::c_int = 5;
    END_OF_STACK
}

/// Functions that only an unwinding program would call.
macro_rules! never {
    ($($name:ident)+) => { $(
        // SAFETY: no other definition of the name is linked. No code unwinds, so this function is never called.
        #[unsafe(no_mangle)]
        extern "C" fn $name() -> ! {
            std::process::abort()
        }
    )+ };
}

never! {
    _Unwind_GetDataRelBase _Unwind_GetIP _Unwind_GetIPInfo _Unwind_GetLanguageSpecificData _Unwind_GetRegionStart
    _Unwind_GetTextRelBase _Unwind_Resume _Unwind_SetGR _Unwind_SetIP
}

# The same guest after a reboot with what the first one wrote for it.
say restore restore
say boot boot_files
say verify-boot tactus tune verify --json
say plan plan
say before look
say cut cut_short --again
say recovered tactus tune apply --again
say verify tactus tune verify --json
say during look
say revert tactus tune revert
say after look
say left files

# An untuned guest: all is applied and taken back, then applied for good.
say plan plan
say before look
say cut cut_short $PROFILE
say recovered tactus tune apply $PROFILE
say during look
say revert tactus tune revert
say after look
say left files
say persist tactus tune apply $PROFILE --persist
say verify tactus tune verify --json
say kept files
say drop-in cat /etc/default/grub.d/50-tactus.cfg
say state keep

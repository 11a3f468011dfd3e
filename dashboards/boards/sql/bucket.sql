toStartOfInterval(at, toIntervalSecond(if(toUnixTimestamp($__toTime) - toUnixTimestamp($__fromTime) > 1209600,
            86400 * intDiv($__interval_s + 86399, 86400), 3600 * intDiv($__interval_s + 3599, 3600))))

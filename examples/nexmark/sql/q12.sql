-- PROCTIME() is the time of the batch that a bid was in
SELECT bidder, count(*) AS bid_count, starttime, starttime + INTERVAL 10 SECONDS AS endtime
FROM (SELECT bidder, time_bucket(INTERVAL 10 SECONDS, p_time) AS starttime FROM bid_processed)
GROUP BY bidder, starttime

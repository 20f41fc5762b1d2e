SELECT p.id, p.name, p.starttime
FROM (
  SELECT DISTINCT id, name, time_bucket(INTERVAL 10 SECONDS, dateTime) AS starttime FROM person
) p JOIN (
  SELECT DISTINCT seller, time_bucket(INTERVAL 10 SECONDS, dateTime) AS starttime FROM auction
) a
ON p.id = a.seller AND p.starttime = a.starttime
